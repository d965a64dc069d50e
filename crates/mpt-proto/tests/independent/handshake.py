"""Checks handshake.txt with an implementation of Noise IKpsk2 of its own: needs python3-cryptography."""

import hashlib
import hmac
import pathlib

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305

text = pathlib.Path(__file__).with_name("handshake.txt").read_text()
v = {name: bytes.fromhex(value) for name, value in (line.split(": ") for line in text.splitlines())}


def hash_(*parts):
    return hashlib.blake2s(b"".join(parts)).digest()


def hkdf(key, material, count):
    mac = lambda key, data: hmac.new(key, data, hashlib.blake2s).digest()
    secret, out = mac(key, material), [b""]
    for number in range(1, count + 1):
        out.append(mac(secret, out[-1] + bytes([number])))
    return out[1:]


def public(private):
    return X25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw()


def dh(private, key):
    own = X25519PrivateKey.from_private_bytes(private)
    return own.exchange(X25519PublicKey.from_public_bytes(key))


class Noise:
    """The responder reads the first message, and writes the second."""

    def __init__(self, responder):
        name = b"Noise_IKpsk2_25519_ChaChaPoly_BLAKE2s"
        self.ck, self.key, self.n = hash_(name), None, 0
        self.h = hash_(hash_(self.ck, b"MPT sealed 1"), responder)

    def mix_hash(self, data):
        self.h = hash_(self.h, data)

    def mix_key(self, material):
        self.ck, self.key = hkdf(self.ck, material, 2)
        self.n = 0

    def cipher(self):
        nonce = bytes(4) + self.n.to_bytes(8, "little")
        self.n += 1
        return ChaCha20Poly1305(self.key), nonce

    def decrypt(self, data):
        cipher, nonce = self.cipher()
        plain = cipher.decrypt(nonce, data, self.h)
        self.mix_hash(data)
        return plain


static, ephemeral = v["responder private"], v["responder ephemeral"]
initiation, response = v["initiation"], v["response"]
noise = Noise(public(static))
remote, first = initiation[4:36], initiation[4:-32]
assert remote == public(v["initiator ephemeral"])
noise.mix_hash(remote)
noise.mix_key(remote)
noise.mix_key(dh(static, remote))
peer = noise.decrypt(first[32:80])
assert peer == public(v["initiator private"])
noise.mix_key(dh(static, peer))
hello = noise.decrypt(first[80:])
assert hello[:4] == bytes([1, 0, 0, 1]) and hello[72:76] == initiation[:4] and len(hello) == 88
assert int.from_bytes(hello[76:84], "big") == 2**62 + 1_800_000_000

own = public(ephemeral)
assert response[:32] == own
noise.mix_hash(own)
noise.mix_key(own)
noise.mix_key(dh(ephemeral, remote))
noise.mix_key(dh(ephemeral, peer))
noise.ck, mixed, noise.key = hkdf(noise.ck, v["pre-shared"], 3)
noise.mix_hash(mixed)
noise.n = 0
answer = noise.decrypt(response[32:-16])
assert answer[16:24] == hello[8:16] and answer[64:68] == bytes([0, 0, 0, 1])

for message, owner in [(initiation[:-16], public(static)), (response, peer)]:
    key = hash_(b"MPT mac1", owner)
    assert message[-16:] == hashlib.blake2s(message[:64], key=key, digest_size=16).digest()

for key, name in zip(hkdf(noise.ck, b"", 2), ["initiator", "responder"]):
    datagram = v["datagram from " + name]
    nonce = bytes([0, 0, 0, 3]) + bytes(4) + datagram[16:20]
    assert AESGCM(key).decrypt(nonce, datagram[24:], datagram[:24]) == bytes(range(24))
print("all vectors are right")
