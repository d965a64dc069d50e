-- MPT in Wireshark: GRE in UDP with MPT's control messages, and extended framing.
--
-- Wireshark itself takes UDP port 4754 for GRE in UDP and shows data down to the inner packet, but
-- takes MPT's keepalives for broken IP packets. This dissector knows what MPT's protocol document
-- says (docs/protocol.md; section numbers below are its), names what a receiver would drop, and
-- takes over the ports set in its preferences.

local mpt = Proto("mpt", "MPT, multipath GRE in UDP")

mpt.prefs.ports = Pref.range("UDP ports", "4754", "Ports on which MPT's endpoints receive", 65535)
mpt.prefs.verify = Pref.bool("Verify GRE checksums", true, "Sum up every datagram that has a checksum")

local GRE_WORD = 4
local IPV4, IPV6, EXTENDED = 0x0800, 0x86dd, 0x88b5
local FIRST_CONTROL = 0xa0 -- section 3.3: below it begins an inner packet
-- The original's has no trailer.
local KEEPALIVE, KEEPALIVE_LENGTH, BARE_LENGTH = 0xa1, 56, 40
local NOTHING_ECHOED = 0xffffffff
local EXTENDED_LENGTH = 12

local TYPES = { [IPV4] = "IPv4", [IPV6] = "IPv6", [EXTENDED] = "extended" }
local CONTROLS = {
  [0xa1] = "keepalive",
  [0xa2] = "command of the original MPT",
  [0xa3] = "command of the original MPT",
  [0xa4] = "command of the original MPT",
  [0xa5] = "command of the original MPT",
}
local CHECKSUMS = { [0] = "bad", [1] = "good", [2] = "unverified" }
-- Section 8.2.
local MESSAGES = {
  [0] = "data", "hello", "hello answer", "handshake initiation", "handshake response",
  "path challenge", "path answer", "feedback", "beacon", "path status", "close",
}
local REASONS = { [0] = "shut down", "switched off", "replaced", "protocol error" }

local f = {
  flags = ProtoField.uint16("mpt.flags", "Flags and version", base.HEX),
  has_checksum = ProtoField.bool("mpt.flags.checksum", "Checksum present", 16, nil, 0x8000),
  has_key = ProtoField.bool("mpt.flags.key", "Key present", 16, nil, 0x2000),
  has_sequence = ProtoField.bool("mpt.flags.sequence", "Sequence number present", 16, nil, 0x1000),
  zero = ProtoField.uint16("mpt.flags.zero", "Must be zero", base.HEX, nil, 0x4c00),
  version = ProtoField.uint16("mpt.version", "Version", base.DEC, nil, 0x0007),
  type = ProtoField.uint16("mpt.type", "Protocol type", base.HEX, TYPES),
  checksum = ProtoField.uint16("mpt.checksum", "Checksum", base.HEX),
  checksum_status = ProtoField.uint8("mpt.checksum.status", "Checksum status", base.DEC, CHECKSUMS),
  key = ProtoField.uint32("mpt.key", "Key", base.DEC_HEX),
  sequence = ProtoField.uint32("mpt.sequence", "Sequence number", base.DEC),
  control = ProtoField.uint8("mpt.control", "Control code", base.HEX, CONTROLS),
  status = ProtoField.uint8("mpt.status", "Status", base.HEX),
  deaf = ProtoField.bool("mpt.status.deaf", "Does not hear us on this path", 8, nil, 0x01),
  off = ProtoField.bool("mpt.status.off", "Path switched off", 8, nil, 0x02),
  standby = ProtoField.bool("mpt.status.standby", "Stands by", 8, nil, 0x04),
  calls = ProtoField.uint8("mpt.status.calls", "Calls, modulo 32", base.DEC, nil, 0xf8),
  backup = ProtoField.bool("mpt.status.backup", "Only if no other path is up", 8, nil, 0x04),
  longest = ProtoField.uint16("mpt.longest", "Longest datagram arrived lately", base.DEC),
  count = ProtoField.uint8("mpt.count", "Keepalives accepted, modulo 256", base.DEC),
  ip_version = ProtoField.uint8("mpt.ip_version", "IP version of tunnel addresses", base.DEC),
  weight = ProtoField.uint16("mpt.weight", "Weight wanted for this path", base.DEC),
  sender = ProtoField.ipv6("mpt.sender", "Sender's tunnel address"),
  receiver = ProtoField.ipv6("mpt.receiver", "Receiver's tunnel address"),
  sender4 = ProtoField.ipv4("mpt.sender4", "Sender's tunnel address"),
  receiver4 = ProtoField.ipv4("mpt.receiver4", "Receiver's tunnel address"),
  sent = ProtoField.uint32("mpt.sent", "Datagrams sent with inner packets, modulo 2^32", base.DEC),
  time = ProtoField.uint32("mpt.time", "Sending time in microseconds", base.DEC),
  echo = ProtoField.uint32("mpt.echo", "Last sending time of the other side in microseconds", base.DEC),
  held = ProtoField.uint32("mpt.held", "Microseconds since that came", base.DEC),
  -- Section 8.
  message = ProtoField.uint8("mpt.message", "Message", base.DEC, MESSAGES, 0xf0),
  partial = ProtoField.bool("mpt.partial", "Inner checksum partial", 8, nil, 0x08),
  copy = ProtoField.bool("mpt.copy", "Copy of an earlier packet", 8, nil, 0x04),
  path = ProtoField.uint8("mpt.path", "Path id", base.DEC),
  distance = ProtoField.uint16("mpt.flow_distance", "Flow distance", base.DEC),
  path_sequence = ProtoField.uint32("mpt.path_sequence", "Path sequence", base.DEC),
  timestamp = ProtoField.uint32("mpt.timestamp", "Send timestamp in microseconds", base.DEC),
  hello_version = ProtoField.uint8("mpt.hello.version", "Version of extended framing", base.DEC),
  lanes = ProtoField.uint16("mpt.hello.lanes", "Lanes", base.DEC),
  capabilities = ProtoField.uint32("mpt.hello.capabilities", "Capabilities", base.HEX),
  session = ProtoField.bytes("mpt.hello.session", "Session id"),
  answered = ProtoField.bytes("mpt.hello.answered", "Session id that is answered"),
  configured_key = ProtoField.uint32("mpt.hello.key", "Configured key", base.DEC_HEX),
  index = ProtoField.uint32("mpt.hello.index", "Connection index", base.HEX),
  challenge = ProtoField.bytes("mpt.challenge", "Challenge"),
  challenge_size = ProtoField.uint16("mpt.challenge.size", "Bytes that brought the challenge", base.DEC),
  blocks = ProtoField.uint8("mpt.blocks", "Path blocks", base.DEC),
  clock = ProtoField.uint32("mpt.clock", "Sender's clock in microseconds", base.DEC),
  lost = ProtoField.uint16("mpt.feedback.lost", "Datagrams lost for certain, modulo 65536", base.DEC),
  highest = ProtoField.uint32("mpt.feedback.highest", "Highest path sequence received", base.DEC),
  received = ProtoField.uint32("mpt.feedback.received", "Bytes received, modulo 2^32", base.DEC),
  arrival = ProtoField.uint32("mpt.feedback.arrival", "Arrival of the highest in microseconds", base.DEC),
  delay = ProtoField.int32("mpt.feedback.delay", "Relative delay of the highest in microseconds", base.DEC),
  delay_min = ProtoField.int32("mpt.feedback.delay_min", "Smallest relative delay", base.DEC),
  delay_mean = ProtoField.int32("mpt.feedback.delay_mean", "Mean relative delay", base.DEC),
  missing = ProtoField.uint16("mpt.feedback.missing", "Missing before the range", base.DEC),
  run = ProtoField.uint16("mpt.feedback.range", "Received in the range", base.DEC),
  last_global = ProtoField.uint32("mpt.beacon.global", "Last global sequence sent", base.DEC),
  last_path = ProtoField.uint32("mpt.beacon.path_sequence", "Its path sequence", base.DEC),
  reason = ProtoField.uint8("mpt.close.reason", "Reason", base.DEC, REASONS),
  drop = ProtoField.string("mpt.drop", "A receiver drops it as"),
}
mpt.fields = f

local dropped = ProtoExpert.new("mpt.dropped", "a receiver drops this datagram",
  expert.group.PROTOCOL, expert.severity.WARN)
mpt.experts = { dropped }

local ip, ipv6, data = Dissector.get("ip"), Dissector.get("ipv6"), Dissector.get("data")

-- Names the drop of section 6.2 that this datagram meets, at these bytes.
local function drop(tree, pinfo, range, name)
  tree:add(f.drop, range, name):set_generated()
  tree:add_proto_expert_info(dropped, "dropped as " .. name)
  pinfo.cols.info = "Dropped as " .. name
end

-- The Internet checksum of a datagram that has one: 0 if it is right.
local function sum(tvb)
  local total, length = 0, tvb:len()
  for at = 0, length - 2, 2 do
    total = total + tvb(at, 2):uint()
  end
  if length % 2 == 1 then
    total = total + tvb(length - 1, 1):uint() * 256
  end
  while total > 0xffff do
    total = total % 0x10000 + math.floor(total / 0x10000)
  end
  return 0xffff - total
end

-- A tunnel address of 16 bytes, shown as IPv4 where it is one; its text for the summary.
local function address(tree, range, six, four)
  local mapped = range:len() == 16 and range(0, 8):uint64() == UInt64(0) and range(8, 4):uint() == 0xffff
  if mapped then
    tree:add(four, range(12, 4))
    return tostring(range(12, 4):ipv4())
  end
  tree:add(six, range)
  return tostring(range:ipv6())
end

-- Section 3.4. The status byte is that of a path status message, too.
local function status(tree, range)
  local branch = tree:add(f.status, range)
  branch:add(f.deaf, range)
  branch:add(f.off, range)
  return branch
end

local function status_text(value)
  local words = {}
  if value % 2 == 1 then words[#words + 1] = "does not hear us" end
  if math.floor(value / 2) % 2 == 1 then words[#words + 1] = "switched off" end
  if #words == 0 then return "hears us" end
  return table.concat(words, ", ")
end

-- The byte in which a keepalive announces a weight, or has the IP version as the original does.
local function weight(tree, range)
  local value = range:uint()
  local place = value - 16
  if place < 0 then
    tree:add(f.ip_version, range)
  elseif place < 16 then
    tree:add(f.weight, range, place)
  else
    tree:add(f.weight, range, (16 + place % 16) * 2 ^ (math.floor(place / 16) - 1))
  end
end

local function keepalive(payload, pinfo, tree)
  local word = payload(1, 1)
  local branch = status(tree, word)
  branch:add(f.standby, word)
  branch:add(f.calls, word)
  local longest = payload(2, 2)
  tree:add(f.longest, longest):append_text(longest:uint() == 0 and " (not told)" or " bytes")
  tree:add(f.count, payload(4, 1))
  weight(tree, payload(5, 1))
  local from = address(tree, payload(8, 16), f.sender, f.sender4)
  local to = address(tree, payload(24, 16), f.receiver, f.receiver4)
  if payload:len() == KEEPALIVE_LENGTH then
    tree:add(f.sent, payload(40, 4))
    tree:add(f.time, payload(44, 4))
    if payload(52, 4):uint() ~= NOTHING_ECHOED then
      tree:add(f.echo, payload(48, 4))
      tree:add(f.held, payload(52, 4))
    end
  end
  pinfo.cols.info = string.format("Keepalive %s > %s, %s", from, to, status_text(payload(1, 1):uint()))
end

local function control(payload, pinfo, tree)
  local code = payload(0, 1):uint()
  tree:add(f.control, payload(0, 1))
  if code ~= KEEPALIVE then
    drop(tree, pinfo, payload(0, 1), "control_unknown")
  elseif payload:reported_len() ~= KEEPALIVE_LENGTH and payload:reported_len() ~= BARE_LENGTH then
    drop(tree, pinfo, payload(0), "control_length")
  elseif payload:len() == payload:reported_len() then
    keepalive(payload, pinfo, tree)
  end
end

-- Section 6.3: whether a receiver takes this for an IP packet of that version.
local function well_formed(payload, version)
  local length = payload:reported_len()
  if length == 0 or math.floor(payload(0, 1):uint() / 16) ~= version then return false end
  if version == 4 then
    if length < 20 then return false end
    if payload:len() < 4 then return true end -- cut off by the capture
    local header, total = payload(0, 1):uint() % 16 * 4, payload(2, 2):uint()
    return header >= 20 and total >= header and total <= length
  end
  if length < 40 then return false end
  return payload:len() < 6 or payload(4, 2):uint() <= length - 40
end

local function inner(payload, pinfo, tree, root, version)
  if not well_formed(payload, version) then
    drop(tree, pinfo, payload:len() > 0 and payload(0) or payload, "inner_malformed")
    return
  end
  local dissector = version == 4 and ip or ipv6
  dissector:call(payload, pinfo, root)
end

-- Section 8.2. Each returns nothing; a message that is too short stays without its fields.
local messages = {}

local function hello(payload, _, tree)
  tree:add(f.hello_version, payload(0, 1))
  local lanes = payload(2, 2)
  tree:add(f.lanes, lanes)
  tree:add(f.capabilities, payload(4, 4))
  tree:add(f.session, payload(8, 8))
  tree:add(f.answered, payload(16, 8))
  address(tree, payload(24, 16), f.sender, f.sender4)
  address(tree, payload(40, 16), f.receiver, f.receiver4)
  if payload(60, 4):uint() % 2 == 1 then tree:add(f.configured_key, payload(56, 4)) end
  for lane = 0, lanes:uint() - 1 do
    if payload:len() < 72 + 4 * lane then break end
    tree:add(f.index, payload(68 + 4 * lane, 4))
  end
end
messages[1] = { 72, hello }
messages[2] = { 72, hello }
messages[5] = { 8, function(payload, _, tree) tree:add(f.challenge, payload(0, 8)) end }
messages[6] = { 12, function(payload, _, tree)
  tree:add(f.challenge, payload(0, 8))
  tree:add(f.challenge_size, payload(8, 2))
end }
messages[7] = { 8, function(payload, _, tree)
  tree:add(f.blocks, payload(0, 1))
  tree:add(f.clock, payload(4, 4))
  local at = 8
  for _ = 1, payload(0, 1):uint() do
    if payload:len() < at + 28 then return end
    local ranges = payload(at + 1, 1):uint()
    local branch = tree:add(f.path, payload(at, 1))
    local words = { f.highest, f.received, f.arrival, f.delay, f.delay_min, f.delay_mean }
    for number, field in ipairs(words) do
      branch:add(field, payload(at + 4 * number, 4))
    end
    branch:add(f.lost, payload(at + 2, 2))
    at = at + 28
    for _ = 1, ranges do
      if payload:len() < at + 4 then return end
      branch:add(f.missing, payload(at, 2))
      branch:add(f.run, payload(at + 2, 2))
      at = at + 4
    end
  end
end }
messages[8] = { 4, function(payload, _, tree)
  tree:add(f.blocks, payload(0, 1))
  for block = 0, payload(0, 1):uint() - 1 do
    local at = 4 + 12 * block
    if payload:len() < at + 12 then return end
    local branch = tree:add(f.path, payload(at, 1))
    branch:add(f.last_global, payload(at + 4, 4))
    branch:add(f.last_path, payload(at + 8, 4))
  end
end }
messages[9] = { 4, function(payload, pinfo, tree)
  status(tree, payload(0, 1)):add(f.backup, payload(0, 1))
  pinfo.cols.info = "Path status, " .. status_text(payload(0, 1):uint())
end }
messages[10] = { 4, function(payload, _, tree) tree:add(f.reason, payload(0, 1)) end }

-- Section 8.1, behind the GRE header.
local function extended(payload, pinfo, tree, root)
  if payload:len() < EXTENDED_LENGTH then return end
  local kind = math.floor(payload(0, 1):uint() / 16)
  for _, field in ipairs({ f.message, f.partial, f.copy }) do tree:add(field, payload(0, 1)) end
  tree:add(f.path, payload(1, 1))
  tree:add(f.distance, payload(2, 2))
  tree:add(f.path_sequence, payload(4, 4))
  tree:add(f.timestamp, payload(8, 4))
  pinfo.cols.info = (MESSAGES[kind] or "Unknown message"):gsub("^%l", string.upper)
  if payload:len() == EXTENDED_LENGTH then return end
  local rest = payload(EXTENDED_LENGTH):tvb()
  local version = math.floor(rest(0, 1):uint() / 16)
  local message = messages[kind]
  if kind == 0 and (version == 4 or version == 6) and well_formed(rest, version) then
    local dissector = version == 4 and ip or ipv6
    dissector:call(rest, pinfo, root)
  elseif message and rest:len() >= message[1] then
    message[2](rest, pinfo, tree)
  else
    -- Handshakes, what sealed framing has encrypted, what is not known.
    data:call(rest, pinfo, tree)
  end
end

-- Section 3.1. Where the payload begins; nil if there is none, because the datagram is dropped.
local function header(tvb, pinfo, tree)
  local flags, kind = tvb(0, 2):uint(), tvb(2, 2):uint()
  local branch = tree:add(f.flags, tvb(0, 2))
  for _, field in ipairs({ f.has_checksum, f.has_key, f.has_sequence, f.zero, f.version }) do
    branch:add(field, tvb(0, 2))
  end
  tree:add(f.type, tvb(2, 2))
  if flags % 8 ~= 0 then
    return drop(tree, pinfo, tvb(0, 2), "gre_version")
  end
  if bit.band(flags, 0x4c00) ~= 0 then
    return drop(tree, pinfo, tvb(0, 2), "gre_flags")
  end
  if not TYPES[kind] then
    return drop(tree, pinfo, tvb(2, 2), "gre_protocol")
  end
  local at = GRE_WORD
  for _, option in ipairs({ { 0x8000, f.checksum, 2 }, { 0x2000, f.key, 4 }, { 0x1000, f.sequence, 4 } }) do
    local bits, field, length = table.unpack(option)
    if bit.band(flags, bits) ~= 0 then
      if tvb:reported_len() < at + 4 then
        return drop(tree, pinfo, tvb(0), "gre_truncated")
      end
      if tvb:len() < at + 4 then return nil end -- cut off by the capture
      tree:add(field, tvb(at, length))
      at = at + 4
    end
  end
  if bit.band(flags, 0x8000) ~= 0 then
    local whole = mpt.prefs.verify and tvb:len() == tvb:reported_len()
    local verdict = whole and (sum(tvb) == 0 and 1 or 0) or 2
    tree:add(f.checksum_status, tvb(GRE_WORD, 2), verdict):set_generated()
    if verdict == 0 then
      return drop(tree, pinfo, tvb(GRE_WORD, 2), "gre_checksum")
    end
  end
  return at, kind
end

function mpt.dissector(tvb, pinfo, root)
  pinfo.cols.protocol = "MPT"
  pinfo.cols.info = "MPT"
  local tree = root:add(mpt, tvb())
  if tvb:len() < GRE_WORD then
    if tvb:reported_len() < GRE_WORD then drop(tree, pinfo, tvb(), "gre_truncated") end
    return tvb:len()
  end
  local at, kind = header(tvb, pinfo, tree)
  if not at then return tvb:len() end
  tree:set_len(math.min(at, tvb:len()))
  if tvb:reported_len() == at then
    drop(tree, pinfo, tvb(0), "inner_malformed")
    return tvb:len()
  end
  if tvb:len() == at then return tvb:len() end -- cut off by the capture
  local payload = tvb(at):tvb()
  if kind == EXTENDED then
    tree:set_len(math.min(at + EXTENDED_LENGTH, tvb:len()))
    extended(payload, pinfo, tree, root)
  elseif payload(0, 1):uint() >= FIRST_CONTROL then
    tree:set_len(tvb:len())
    control(payload, pinfo, tree)
  else
    inner(payload, pinfo, tree, root, kind == IPV4 and 4 or 6)
  end
  return tvb:len()
end

local udp, ports = DissectorTable.get("udp.port"), nil

local function register()
  if ports then udp:remove(ports, mpt) end
  ports = tostring(mpt.prefs.ports)
  if ports ~= "" then udp:add(ports, mpt) end
end

function mpt.prefs_changed()
  register()
end
register()
