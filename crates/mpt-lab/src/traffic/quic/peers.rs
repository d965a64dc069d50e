//! Both ends of one connection on their way to each other.
//!
//! The certificate is self-signed and for this one connection; the source trusts only it. So no
//! other packets can be taken for the flow.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use quinn::rustls::RootCertStore;
use quinn::rustls::pki_types::PrivatePkcs8KeyDer;
use quinn::{
    ClientConfig, Connection, Endpoint, EndpointConfig, ServerConfig, TokioRuntime,
    TransportConfig, VarInt,
};
use tokio::time::timeout;

use super::{Congestion, SetupError, Sink, Source};

/// The name in the certificate. It is not resolved.
const NAME: &str = "sink.invalid";

/// Bytes that may be under way: twice what 400 Mbit/s and a round trip of 400 ms have in flight,
/// because everything behind a lost packet waits for its second coming.
const WINDOW: u32 = 2 * (400_000_000 / 8) / 1000 * 400;

/// One end, not connected yet.
pub(super) struct Peer {
    socket: UdpSocket,
    role: Role,
}

enum Role {
    Sink(ServerConfig),
    Source { remote: SocketAddr, configuration: ClientConfig },
}

/// Makes the sink and the source known to each other.
pub(super) fn pair(sink: Sink, source: Source) -> Result<[Peer; 2], SetupError> {
    let transport = Arc::new(transport(source.congestion()));
    let (mut server, mut client) = secrets().map_err(SetupError::Secrets)?;
    server.transport_config(Arc::clone(&transport));
    client.transport_config(transport);
    let role = Role::Source { remote: source.remote, configuration: client };
    Ok([
        Peer { socket: sink.socket, role: Role::Sink(server) },
        Peer { socket: source.socket, role },
    ])
}

impl Peer {
    /// Shakes hands, within `limit`. The endpoint has to be kept as long as the connection is used.
    pub(super) async fn connect(self, limit: Duration) -> Result<(Endpoint, Connection), String> {
        let shaken = timeout(limit, self.handshake()).await;
        shaken.unwrap_or_else(|_| Err(format!("no answer within {} s", limit.as_secs_f64())))
    }

    async fn handshake(self) -> Result<(Endpoint, Connection), String> {
        let Self { socket, role } = self;
        let endpoint = |server| {
            let runtime = Arc::new(TokioRuntime);
            Endpoint::new(EndpointConfig::default(), server, socket, runtime)
                .map_err(|error| error.to_string())
        };
        match role {
            Role::Sink(configuration) => {
                let endpoint = endpoint(Some(configuration))?;
                let incoming = endpoint.accept().await.ok_or("the endpoint was closed")?;
                let connection = incoming.await.map_err(|error| error.to_string())?;
                Ok((endpoint, connection))
            }
            Role::Source { remote, configuration } => {
                let endpoint = endpoint(None)?;
                let connecting = endpoint.connect_with(configuration, remote, NAME);
                let connecting = connecting.map_err(|error| error.to_string())?;
                let connection = connecting.await.map_err(|error| error.to_string())?;
                Ok((endpoint, connection))
            }
        }
    }
}

fn secrets() -> Result<(ServerConfig, ClientConfig), String> {
    let rcgen::CertifiedKey { cert, signing_key } =
        rcgen::generate_simple_self_signed([NAME.to_owned()]).map_err(|e| e.to_string())?;
    let key = PrivatePkcs8KeyDer::from(signing_key.serialize_der());
    let server = ServerConfig::with_single_cert(vec![cert.der().clone()], key.into())
        .map_err(|error| error.to_string())?;
    let mut trusted = RootCertStore::empty();
    trusted.add(cert.der().clone()).map_err(|error| error.to_string())?;
    let client = ClientConfig::with_root_certificates(Arc::new(trusted))
        .map_err(|error| error.to_string())?;
    Ok((server, client))
}

fn transport(congestion: Congestion) -> TransportConfig {
    let mut transport = TransportConfig::default();
    transport
        .stream_receive_window(VarInt::from_u32(WINDOW))
        .receive_window(VarInt::from_u32(WINDOW))
        .send_window(WINDOW.into())
        .congestion_controller_factory(congestion.factory())
        // A flow lives until its deadline, whatever the network does.
        .max_idle_timeout(None);
    transport
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn an_unanswered_connection_gives_up_at_the_limit() {
        let limit = Duration::from_millis(100);
        let [sink, source] = peers();
        // The sink's socket is open all the time, so that silence is all the source gets.
        let silent = sink.socket.try_clone().unwrap();
        for end in [source, sink] {
            let error = run(end.connect(limit)).unwrap_err();
            assert_eq!(error, "no answer within 0.1 s");
        }
        drop(silent);
    }

    #[test]
    fn a_source_accepts_only_its_own_sink() {
        let [sink, mut source] = peers();
        let [_, stranger] = peers();
        let (Role::Source { configuration: ours, .. }, Role::Source { configuration: theirs, .. }) =
            (&mut source.role, stranger.role)
        else {
            panic!("the second of a pair is its source");
        };
        *ours = theirs;
        let limit = Duration::from_secs(60);
        let (error, refused) = run(async {
            let sink = tokio::spawn(sink.connect(limit));
            (source.connect(limit).await.unwrap_err(), sink.await.unwrap())
        });
        assert!(error.contains("certificate"), "{error}");
        assert!(refused.is_err());
    }

    fn peers() -> [Peer; 2] {
        let sink = Sink::listen(Ipv4Addr::LOCALHOST.into(), None).unwrap();
        let source = Source::connect(sink.address(), None, Congestion::Cubic).unwrap();
        pair(sink, source).unwrap()
    }

    fn run<T>(future: impl Future<Output = T>) -> T {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        runtime.enable_all().build().unwrap().block_on(future)
    }
}
