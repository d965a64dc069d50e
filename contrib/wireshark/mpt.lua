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
-- Section 8: behind the GRE header; data has a sequence number and nothing else has.
local EXTENDED_LENGTH, DATA, COVERED, HELLO = 12, 0, 14, 1
local HAS_CHECKSUM, HAS_KEY, HAS_SEQUENCE = 0x8000, 0x2000, 0x1000
-- The last global sequence in a beacon of a path on which nothing was sent.
local NOTHING_SENT = 0xffffffff
local MAX_LANES, MAX_BLOCKS, MAX_RANGES, MAX_WORDS = 64, 64, 32, 16

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
  "path challenge", "path answer", "feedback", "beacon", "path status", "close", "hello confirm", "parity",
  "cookie reply", "covered data",
}
local REASONS = { [0] = "shut down", "switched off", "replaced", "protocol error", "unknown index" }

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
  longest = ProtoField.uint16("mpt.longest", "Longest datagram arrived lately", base.DEC),
  count = ProtoField.uint8("mpt.count", "Keepalives or path statuses accepted, modulo 256", base.DEC),
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
  out_of_turn = ProtoField.bool("mpt.out_of_turn", "Out of turn", 8, nil, 0x04),
  tail = ProtoField.bool("mpt.tail", "No further packet waits", 8, nil, 0x02),
  equalise = ProtoField.bool("mpt.equalise", "May be held to the path status's delay", 8, nil, 0x01),
  path = ProtoField.uint8("mpt.path", "Path id", base.DEC),
  distance = ProtoField.uint16("mpt.flow_distance", "Flow distance", base.DEC),
  path_sequence = ProtoField.uint32("mpt.path_sequence", "Path sequence", base.DEC),
  timestamp = ProtoField.uint32("mpt.timestamp", "Send timestamp in microseconds", base.DEC),
  hello_version = ProtoField.uint8("mpt.hello.version", "Version of extended framing", base.DEC),
  lanes = ProtoField.uint16("mpt.hello.lanes", "Lanes", base.DEC),
  capabilities = ProtoField.uint32("mpt.hello.capabilities", "Capabilities", base.HEX),
  accepts_partial = ProtoField.bool("mpt.hello.partial", "Accepts partial checksums", 32, nil, 0x1),
  wants_feedback = ProtoField.bool("mpt.hello.feedback", "Wants feedback", 32, nil, 0x2),
  repairs = ProtoField.bool("mpt.hello.repair", "Repairs losses", 32, nil, 0x4),
  session = ProtoField.uint64("mpt.hello.session", "Session id", base.HEX),
  answered = ProtoField.uint64("mpt.hello.answered", "Session id of the receiver", base.HEX),
  configured_key = ProtoField.uint32("mpt.hello.key", "Configured key", base.DEC_HEX),
  cookie = ProtoField.uint64("mpt.hello.cookie", "Cookie", base.HEX),
  index = ProtoField.uint32("mpt.hello.index", "Connection index", base.HEX),
  challenge = ProtoField.uint64("mpt.challenge", "Challenge", base.HEX),
  challenge_size = ProtoField.uint16("mpt.challenge.size", "Bytes that brought the challenge", base.DEC),
  blocks = ProtoField.uint8("mpt.blocks", "Path blocks", base.DEC),
  block = ProtoField.uint8("mpt.block.path", "Block about path id", base.DEC),
  number = ProtoField.uint16("mpt.feedback.number", "Number of the feedback", base.DEC),
  clock = ProtoField.uint32("mpt.feedback.clock", "Sender's clock in microseconds", base.DEC),
  ranges = ProtoField.uint8("mpt.feedback.ranges", "Ranges", base.DEC),
  words = ProtoField.uint8("mpt.feedback.words", "Bitmap words", base.DEC),
  highest = ProtoField.uint32("mpt.feedback.highest", "Highest path sequence received", base.DEC),
  highest_sent = ProtoField.uint32("mpt.feedback.highest_sent", "Send timestamp of the highest", base.DEC),
  highest_arrived = ProtoField.uint32("mpt.feedback.highest_arrived", "Arrival of the highest in microseconds", base.DEC),
  received = ProtoField.uint32("mpt.feedback.received", "Datagrams received, modulo 2^32", base.DEC),
  received_bytes = ProtoField.uint64("mpt.feedback.received_bytes", "Bytes received", base.DEC),
  lost = ProtoField.uint32("mpt.feedback.lost", "Datagrams lost for certain, modulo 2^32", base.DEC),
  resolved = ProtoField.uint32("mpt.feedback.resolved", "Every path sequence before is received or lost", base.DEC),
  duplicates = ProtoField.uint16("mpt.feedback.duplicates", "Datagrams that came twice, modulo 65536", base.DEC),
  late = ProtoField.uint16("mpt.feedback.late", "Datagrams counted as lost that came, modulo 65536", base.DEC),
  ce = ProtoField.uint32("mpt.feedback.ce", "Datagrams marked CE, modulo 2^32", base.DEC),
  overflows = ProtoField.uint32("mpt.feedback.overflows", "Datagrams dropped at the socket, modulo 2^32", base.DEC),
  first_arrived = ProtoField.uint32("mpt.feedback.first_arrived", "First arrival since the last feedback", base.DEC),
  after_first = ProtoField.uint32("mpt.feedback.bytes_after_first", "Bytes that arrived after it", base.DEC),
  delay_min = ProtoField.uint32("mpt.feedback.delay_min", "Smallest delay, modulo 2^32 microseconds", base.DEC),
  delay_mean = ProtoField.uint32("mpt.feedback.delay_mean", "Mean delay above the smallest", base.DEC),
  delay_deviation = ProtoField.uint32("mpt.feedback.delay_deviation", "Mean deviation of the delay", base.DEC),
  missing = ProtoField.uint16("mpt.feedback.missing", "Missing before the range", base.DEC),
  run = ProtoField.uint16("mpt.feedback.range", "Received in the range", base.DEC),
  below = ProtoField.uint16("mpt.feedback.below", "Reaches below resolved by", base.DEC),
  bitmap = ProtoField.uint64("mpt.feedback.bitmap", "Received from resolved less below on", base.HEX),
  last_global = ProtoField.uint32("mpt.beacon.global", "Last global sequence sent", base.DEC),
  last_path = ProtoField.uint32("mpt.beacon.path_sequence", "Its path sequence", base.DEC),
  settings = ProtoField.bytes("mpt.settings", "Settings of the sender"),
  scheduler = ProtoField.uint8("mpt.settings.scheduler", "How paths are picked", base.DEC,
    { [0] = "by weights", [1] = "flow by flow", [2] = "earliest arrival", [3] = "least delay", [4] = "on all paths" }),
  priority = ProtoField.uint8("mpt.settings.priority", "Priority of the path", base.DEC),
  tunnel_mtu = ProtoField.uint16("mpt.settings.mtu", "MTU of the tunnel", base.DEC),
  dead_time = ProtoField.uint16("mpt.settings.dead_time", "Dead time in milliseconds", base.DEC),
  window = ProtoField.uint16("mpt.settings.window", "Window of the order in packets", base.DEC),
  max_delay = ProtoField.uint16("mpt.settings.max_delay", "Longest hold in milliseconds", base.DEC),
  settings_flags = ProtoField.uint8("mpt.settings.flags", "MTU configured (1), by evidence (2), early release (4), late dropped (8)", base.HEX),
  interval = ProtoField.uint16("mpt.interval", "Would send path statuses at this interval, in milliseconds", base.DEC),
  parity_number = ProtoField.uint8("mpt.parity.number", "Number of the parity", base.DEC),
  parity_count = ProtoField.uint8("mpt.parity.count", "Parities of the group", base.DEC),
  parity_first = ProtoField.uint32("mpt.parity.first", "Global sequence of the first packet", base.DEC),
  parity_members = ProtoField.bytes("mpt.parity.members", "Packets of the group, a bit each"),
  parity = ProtoField.bytes("mpt.parity", "Parity"),
  lost_path = ProtoField.uint8("mpt.lost_path", "Another path that is lost", base.DEC),
  hold = ProtoField.uint32("mpt.hold", "Packets to be equalised are held to, in microseconds", base.DEC),
  reason = ProtoField.uint8("mpt.close.reason", "Reason", base.DEC, REASONS),
  unknown = ProtoField.uint32("mpt.close.index", "Unknown connection index", base.HEX),
  drop = ProtoField.string("mpt.drop", "A receiver drops it as"),
}
mpt.fields = f

local dropped = ProtoExpert.new("mpt.dropped", "a receiver drops this datagram",
  expert.group.PROTOCOL, expert.severity.WARN)
mpt.experts = { dropped }

local ip, ipv6 = Dissector.get("ip"), Dissector.get("ipv6")

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
  for _, field in ipairs({ f.deaf, f.off, f.standby, f.calls }) do branch:add(field, range) end
end

local function status_text(value)
  local words = {}
  if value % 2 == 1 then words[#words + 1] = "does not hear us" end
  if math.floor(value / 2) % 2 == 1 then words[#words + 1] = "switched off" end
  if #words == 0 then return "hears us" end
  return table.concat(words, ", ")
end

-- The byte that announces a weight; nothing is shown if it announces none.
local function weight(tree, range)
  local place = range:uint() - 16
  if place < 1 or place > 163 then return end
  if place < 16 then
    tree:add(f.weight, range, place)
  else
    tree:add(f.weight, range, (16 + place % 16) * 2 ^ (math.floor(place / 16) - 1))
  end
end

-- What the other side's last one of these brought, on its way back.
local function echo(tree, time, held)
  if held:uint() == NOTHING_ECHOED then return end
  tree:add(f.echo, time)
  tree:add(f.held, held)
end

local function longest(tree, range)
  tree:add(f.longest, range):append_text(range:uint() == 0 and " (not told)" or " bytes")
end

local function keepalive(payload, pinfo, tree)
  status(tree, payload(1, 1))
  longest(tree, payload(2, 2))
  tree:add(f.count, payload(4, 1))
  -- The original has the IP version here.
  if payload(5, 1):uint() < 16 then tree:add(f.ip_version, payload(5, 1)) end
  weight(tree, payload(5, 1))
  local from = address(tree, payload(8, 16), f.sender, f.sender4)
  local to = address(tree, payload(24, 16), f.receiver, f.receiver4)
  if payload:len() == KEEPALIVE_LENGTH then
    tree:add(f.sent, payload(40, 4))
    tree:add(f.time, payload(44, 4))
    echo(tree, payload(48, 4), payload(52, 4))
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

-- Section 8.2. By type: the least length, and what shows the fields. It returns the name of the drop that
-- the message meets, if it meets one.
local messages = {}

-- The layout of hello, hello answer and hello confirm.
local function hello(payload, pinfo, tree)
  tree:add(f.hello_version, payload(0, 1))
  local lanes = payload(2, 2):uint()
  tree:add(f.lanes, payload(2, 2))
  local branch = tree:add(f.capabilities, payload(4, 4))
  for _, field in ipairs({ f.accepts_partial, f.wants_feedback, f.repairs }) do branch:add(field, payload(4, 4)) end
  tree:add(f.session, payload(8, 8))
  tree:add(f.answered, payload(16, 8))
  local from = address(tree, payload(24, 16), f.sender, f.sender4)
  local to = address(tree, payload(40, 16), f.receiver, f.receiver4)
  if payload(60, 4):uint() % 2 == 1 then tree:add(f.configured_key, payload(56, 4)) end
  tree:add(f.cookie, payload(64, 8))
  pinfo.cols.info:append(string.format(" %s > %s", from, to))
  if lanes < 1 or lanes > MAX_LANES or payload:len() < 72 + 4 * lanes then return "control_length" end
  for lane = 0, lanes - 1 do
    tree:add(f.index, payload(72 + 4 * lane, 4))
  end
  if payload(72, 4):uint() == 0 then return "unknown_index" end
end
messages[HELLO] = { 72 + 4 * MAX_LANES, hello }
messages[2] = { 76, hello }
messages[11] = { 76, hello }

-- Section 9.2: of one lane, without what an invitation adds. All but the index is encrypted, and nothing without sealed
-- framing takes them (control_unknown).
local function handshake(payload, _, tree) tree:add(f.index, payload(0, 4)) end
messages[3] = { 4 + 96 + 76 + 12 + 32, handshake }
messages[4] = { 48 + 76 + 16, function() end }
messages[13] = { 44, function() end }

messages[5] = { 8, function(payload, _, tree) tree:add(f.challenge, payload(0, 8)) end }
messages[6] = { 12, function(payload, _, tree)
  tree:add(f.challenge, payload(0, 8))
  tree:add(f.challenge_size, payload(8, 2))
end }

-- The fields of a block of feedback: offset, length, field.
local BLOCK_LENGTH = 72
local BLOCK = {
  { 1, 1, f.ranges }, { 2, 1, f.words },
  { 4, 4, f.highest }, { 8, 4, f.highest_sent }, { 12, 4, f.highest_arrived },
  { 16, 4, f.received }, { 20, 8, f.received_bytes }, { 28, 4, f.lost }, { 32, 4, f.resolved },
  { 36, 2, f.duplicates }, { 38, 2, f.late }, { 40, 4, f.ce }, { 44, 4, f.overflows },
  { 48, 4, f.first_arrived }, { 52, 4, f.after_first },
  { 56, 4, f.delay_min }, { 60, 4, f.delay_mean }, { 64, 4, f.delay_deviation },
  { 70, 2, f.below },
}

-- One block; where the next begins, or nil if this one is not complete.
local function block(payload, tree, at)
  if payload:len() < at + BLOCK_LENGTH then return nil end
  local ranges, words = payload(at + 1, 1):uint(), payload(at + 2, 1):uint()
  local length = BLOCK_LENGTH + 4 * ranges + 8 * words
  if ranges > MAX_RANGES or words > MAX_WORDS or payload:len() < at + length then return nil end
  local branch = tree:add(f.block, payload(at, 1))
  for _, entry in ipairs(BLOCK) do
    local offset, size, field = table.unpack(entry)
    branch:add(field, payload(at + offset, size))
  end
  longest(branch, payload(at + 68, 2))
  local place = at + BLOCK_LENGTH
  for _ = 1, ranges do
    branch:add(f.missing, payload(place, 2))
    branch:add(f.run, payload(place + 2, 2))
    place = place + 4
  end
  for _ = 1, words do
    branch:add(f.bitmap, payload(place, 8))
    place = place + 8
  end
  return place
end

messages[7] = { 8, function(payload, _, tree)
  local blocks = payload(0, 1):uint()
  tree:add(f.blocks, payload(0, 1))
  tree:add(f.number, payload(2, 2))
  tree:add(f.clock, payload(4, 4))
  if blocks < 1 or blocks > MAX_BLOCKS then return "control_length" end
  local at = 8
  for _ = 1, blocks do
    at = block(payload, tree, at)
    if not at then return "control_length" end
  end
end }

messages[8] = { 4, function(payload, _, tree)
  local blocks = payload(0, 1):uint()
  tree:add(f.blocks, payload(0, 1))
  if blocks < 1 or blocks > MAX_BLOCKS or payload:len() < 4 + 12 * blocks then return "control_length" end
  for number = 0, blocks - 1 do
    local at = 4 + 12 * number
    local branch = tree:add(f.block, payload(at, 1))
    local last = branch:add(f.last_global, payload(at + 4, 4))
    if payload(at + 4, 4):uint() == NOTHING_SENT then last:append_text(" (nothing sent)") end
    branch:add(f.last_path, payload(at + 8, 4))
  end
end }

-- What may stand behind a path status.
local function settings(tree, payload)
  local branch = tree:add(f.settings, payload)
  branch:add(f.scheduler, payload(1, 1))
  branch:add(f.priority, payload(2, 1))
  weight(branch, payload(3, 1))
  branch:add(f.tunnel_mtu, payload(4, 2))
  branch:add(f.dead_time, payload(6, 2))
  branch:add(f.window, payload(8, 2))
  branch:add(f.max_delay, payload(10, 2))
  branch:add(f.settings_flags, payload(12, 1))
end

messages[9] = { 24, function(payload, pinfo, tree)
  status(tree, payload(0, 1))
  tree:add(f.count, payload(1, 1))
  longest(tree, payload(2, 2))
  weight(tree, payload(4, 1))
  if payload(5, 1):uint() > 0 then tree:add(f.lost_path, payload(5, 1), payload(5, 1):uint() - 1) end
  if payload(6, 2):uint() > 0 then tree:add(f.interval, payload(6, 2)) end
  tree:add(f.sent, payload(8, 4))
  echo(tree, payload(12, 4), payload(16, 4))
  if payload(20, 4):uint() > 0 then tree:add(f.hold, payload(20, 4)) end
  if payload:len() >= 40 and payload(24, 1):uint() == 1 then settings(tree, payload(24, 16)) end
  pinfo.cols.info:append(", " .. status_text(payload(0, 1):uint()))
end }

messages[10] = { 8, function(payload, pinfo, tree)
  local reason = payload(0, 1):uint()
  tree:add(f.reason, payload(0, 1))
  if reason == 4 then tree:add(f.unknown, payload(4, 4)) end
  pinfo.cols.info:append(", " .. (REASONS[reason] or "unknown reason"))
end }

-- Section 8.2, and 8.5.2.
messages[12] = { 12, function(payload, _, tree)
  tree:add(f.parity_number, payload(0, 1))
  tree:add(f.parity_count, payload(1, 1))
  tree:add(f.parity_first, payload(4, 4))
  local number, count, length = payload(0, 1):uint(), payload(1, 1):uint(), payload(2, 1):uint() + 1
  if count > 8 or number >= count or length > 128 or payload:len() < 8 + length + 3 then return "control_length" end
  tree:add(f.parity_members, payload(8, length))
  tree:add(f.parity, payload(8 + length))
end }

-- Section 8.2, behind the header.
local function message(payload, pinfo, tree, kind)
  local known = messages[kind]
  if not known then
    drop(tree, pinfo, payload(0), "control_unknown")
  elseif payload:reported_len() < known[1] then
    drop(tree, pinfo, payload(0), "control_length")
  elseif payload:len() == payload:reported_len() then
    local name = known[2](payload, pinfo, tree)
    if name then drop(tree, pinfo, payload(0), name) end
  end
end

-- Section 8.1, behind the GRE header.
local function extended(payload, pinfo, tree, root, sequenced)
  if payload:reported_len() < EXTENDED_LENGTH then
    drop(tree, pinfo, payload(0), "extended_truncated")
    return
  end
  if payload:len() < EXTENDED_LENGTH then return end -- cut off by the capture
  local kind = math.floor(payload(0, 1):uint() / 16)
  local is_data = kind == DATA or kind == COVERED and sequenced
  tree:add(f.message, payload(0, 1))
  if is_data then
    for _, field in ipairs({ f.partial, f.out_of_turn, f.tail, f.equalise }) do tree:add(field, payload(0, 1)) end
  end
  tree:add(f.path, payload(1, 1)):append_text(payload(1, 1):uint() == 255 and " (none)" or "")
  if is_data then tree:add(f.distance, payload(2, 2)) end
  tree:add(f.path_sequence, payload(4, 4))
  tree:add(f.timestamp, payload(8, 4))
  pinfo.cols.info = (MESSAGES[kind] or "Unknown message"):gsub("^%l", string.upper)
  if is_data ~= sequenced then
    drop(tree, pinfo, payload(0, 1), "gre_flags")
    return
  end
  if payload:reported_len() == EXTENDED_LENGTH then
    local name = is_data and "inner_malformed" or messages[kind] and "control_length" or "control_unknown"
    drop(tree, pinfo, payload(0), name)
    return
  end
  if payload:len() == EXTENDED_LENGTH then return end -- cut off by the capture
  local rest = payload(EXTENDED_LENGTH):tvb()
  if is_data then
    inner(rest, pinfo, tree, root, rest(0, 1):uint() >= 0x60 and 6 or 4)
  else
    message(rest, pinfo, tree, kind)
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
  if kind == EXTENDED and (bit.band(flags, HAS_CHECKSUM) ~= 0 or bit.band(flags, HAS_KEY) == 0) then
    return drop(tree, pinfo, tvb(0, 2), "gre_flags")
  end
  local at = GRE_WORD
  for _, option in ipairs({ { HAS_CHECKSUM, f.checksum, 2 }, { HAS_KEY, f.key, 4 }, { HAS_SEQUENCE, f.sequence, 4 } }) do
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
  if bit.band(flags, HAS_CHECKSUM) ~= 0 then
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
    drop(tree, pinfo, tvb(0), kind == EXTENDED and "extended_truncated" or "inner_malformed")
    return tvb:len()
  end
  if tvb:len() == at then return tvb:len() end -- cut off by the capture
  local payload = tvb(at):tvb()
  if kind == EXTENDED then
    -- The tree of data ends where that of its inner packet begins.
    local sequenced = bit.band(tvb(0, 2):uint(), HAS_SEQUENCE) ~= 0
    tree:set_len(sequenced and math.min(at + EXTENDED_LENGTH, tvb:len()) or tvb:len())
    extended(payload, pinfo, tree, root, sequenced)
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
