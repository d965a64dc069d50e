"use strict";

// What the daemon sends is text of others, such as names of connections: it becomes text of the page, never markup.

const KEPT = 120;
const HUES = 6;
const STALE_MS = 5000;
const AGAIN_MS = 5000;
const SVG = "http://www.w3.org/2000/svg";

const byId = (id) => document.getElementById(id);

function element(name, className, ...children) {
  const made = document.createElement(name);
  if (className) made.className = className;
  made.append(...children);
  return made;
}

function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

// Three digits, as on the terminal.
function digits(value) {
  const places = value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  return value.toFixed(places);
}

function rate(bits) {
  if (bits === null || bits === undefined) return "–";
  for (const [unit, name] of [[1e9, "Gbit/s"], [1e6, "Mbit/s"], [1e3, "kbit/s"]]) {
    if (bits >= 0.9995 * unit) return `${digits(bits / unit)} ${name}`;
  }
  return `${bits.toFixed(0)} bit/s`;
}

function ms(value) {
  return value === null || value === undefined ? "–" : `${digits(value)} ms`;
}

function percent(value) {
  if (value === null || value === undefined) return "–";
  return value > 0 && value < 0.0005 ? "< 0.1 %" : `${(value * 100).toFixed(1)} %`;
}

function duration(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  if (whole < 86400) return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
  return `${Math.floor(whole / 86400)} d ${Math.floor((whole % 86400) / 3600)} h`;
}

// --- Rights -------------------------------------------------------------------------------------------------

// The token comes behind `#`, which browsers send to nobody, and does not stay in the address.
function takeToken() {
  const found = /^#token=([0-9a-f]{32})$/.exec(location.hash);
  if (found) {
    sessionStorage.setItem("token", found[1]);
    history.replaceState(null, "", location.pathname);
  }
  return sessionStorage.getItem("token");
}

let token = takeToken();

async function change(body, said) {
  said.textContent = "…";
  let text;
  try {
    const answer = await fetch("/path", {
      method: "POST",
      headers: { "Authorization": `Bearer ${token}`, "Content-Type": "application/json" },
      body: JSON.stringify(body),
    });
    // Why it was refused, or what is to be known of it.
    text = (await answer.text()).trim();
    if (answer.status === 401 || answer.status === 403) {
      sessionStorage.removeItem("token");
      token = null;
    }
  } catch {
    text = "the daemon does not answer";
  }
  said.textContent = text;
}

// --- Paths --------------------------------------------------------------------------------------------------

const FACTS = [
  ["to the peer", (path) => rate(path.sent)],
  ["from the peer", (path) => rate(path.received)],
  ["share", (path) => percent(path.share)],
  ["round trip", (path) => ms(path.rtt_ms)],
  ["jitter", (path) => ms(path.jitter_ms)],
  ["in queues", (path) => ms(path.queueing_ms)],
  ["loss, in", (path) => percent(path.loss)],
  ["loss, out", (path) => percent(path.loss_out)],
  ["last heard", (path) => path.heard === null ? "never" : `${duration(path.heard)} ago`],
];

function makeChart() {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", `0 0 ${KEPT - 1} 30`);
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", "rate to and from the peer over the last two minutes");
  const lines = ["in", "out"].map((way) => {
    const line = document.createElementNS(SVG, "polyline");
    line.setAttribute("class", way);
    svg.append(line);
    return line;
  });
  return { svg, lines };
}

function draw(lines, histories) {
  const most = Math.max(1, ...histories.flat());
  histories.forEach((history, place) => {
    const first = KEPT - history.length;
    const points = history.map((value, index) => `${first + index},${(29 - 28 * value / most).toFixed(1)}`);
    lines[place].setAttribute("points", points.join(" "));
  });
}

class PathCard {
  constructor(connection, name, hue) {
    this.connection = connection;
    this.name = name;
    this.histories = [[], []];
    this.title = element("h3", "", name);
    this.state = element("span", "state");
    this.cause = element("p", "facts");
    this.way = element("p", "facts");
    this.quota = element("p", "facts");
    this.values = FACTS.map(() => element("dd"));
    const list = element("dl");
    FACTS.forEach(([label], place) => list.append(element("div", "", element("dt", "", label), this.values[place])));
    const { svg, lines } = makeChart();
    this.lines = lines;
    this.said = element("span", "alert");
    this.said.setAttribute("role", "status");
    this.button = element("button");
    this.button.type = "button";
    this.button.addEventListener("click", () => this.set({ status: this.off ? "available" : "off" }));
    this.weight = element("input");
    this.weight.type = "number";
    this.weight.min = "1";
    this.weight.max = "10000";
    this.weight.setAttribute("aria-label", `weight of ${name}`);
    this.weight.addEventListener("change", () => this.set({ weight: Number(this.weight.value) }));
    this.weighing = element("label", "", "weight ", this.weight);
    this.actions = element("div", "actions", this.button, this.weighing, this.said);
    this.node = element("article", "", element("header", "", this.title, this.state), this.cause, list, svg, this.way, this.quota, this.actions);
    this.node.style.borderLeftColor = `var(--p${hue % HUES})`;
  }

  set(what) {
    change({ connection: this.connection, path: this.name, ...what }, this.said);
  }

  show(path, weighted) {
    this.off = path.off;
    const word = path.state.split(":")[0];
    setText(this.state, path.standby && word === "up" ? "standby" : path.state);
    this.state.className = `state ${word}`;
    setText(this.cause, path.cause ?? "");
    this.cause.hidden = !path.cause;
    FACTS.forEach(([, show], place) => setText(this.values[place], show(path)));
    const extra = [path.interface, weighted ? `weight ${path.weight}` : null, path.priority ? `priority ${path.priority}` : null,
      path.metered ? "metered" : null].filter(Boolean);
    setText(this.way, `${path.local} → ${path.remote}${extra.map((part) => ` · ${part}`).join("")}`);
    setText(this.quota, path.quota ? `quota: ${path.quota}` : "");
    this.quota.hidden = !path.quota;
    [path.received, path.sent].forEach((value, place) => {
      const history = this.histories[place];
      history.push(value ?? 0);
      if (history.length > KEPT) history.shift();
    });
    draw(this.lines, this.histories);
    this.actions.hidden = !token && !this.said.textContent;
    this.button.hidden = !token;
    this.weighing.hidden = !token || !weighted;
    setText(this.button, path.off ? `Switch ${path.name} on` : `Switch ${path.name} off`);
    if (document.activeElement !== this.weight) this.weight.value = String(path.weight);
  }
}

// --- Connections --------------------------------------------------------------------------------------------

class ConnectionCard {
  constructor(name) {
    this.name = name;
    this.paths = new Map();
    this.title = element("h2", "", name);
    this.facts = element("p", "facts");
    this.out = element("span", "out");
    this.in = element("span", "in");
    this.drops = element("span", "alert");
    this.problems = element("ul", "problems");
    this.bar = element("div", "shares");
    this.bar.setAttribute("role", "img");
    this.grid = element("div", "paths");
    this.words = element("div");
    this.details = element("details", "", element("summary", "", "Why packets went where they went"), this.words);
    this.details.open = true;
    this.node = element("section", "connection", this.title, this.facts,
      element("p", "total", this.out, this.in, this.drops), this.problems, this.bar, this.grid, this.details);
  }

  show(tunnel, connection) {
    const about = [`tunnel ${tunnel.name}`, tunnel.addresses.join(" "), `peer ${connection.peer.join(" ")}`,
      connection.networks.length ? `networks ${connection.networks.join(" ")}` : null,
      `${connection.scheduler}, ${connection.framing}`, `MTU ${tunnel.mtu}`].filter(Boolean);
    setText(this.facts, about.join(" · "));
    setText(this.out, `↑ ${rate(connection.sent)}`);
    setText(this.in, `↓ ${rate(connection.received)}`);
    setText(this.drops, connection.drops ? `${digits(connection.drops)} drops/s` : "");
    tell(this.problems, connection.problems);
    const shares = [];
    connection.paths.forEach((path, place) => {
      let card = this.paths.get(path.name);
      if (!card) {
        card = new PathCard(connection.name, path.name, place);
        this.paths.set(path.name, card);
        this.grid.append(card.node);
      }
      card.show(path, connection.weighted);
      const share = element("i");
      share.style.width = `${(path.share ?? 0) * 100}%`;
      share.style.background = `var(--p${place % HUES})`;
      shares.push(share);
    });
    forget(this.paths, new Set(connection.paths.map((path) => path.name)));
    this.bar.replaceChildren(...shares);
    this.bar.setAttribute("aria-label", connection.paths.map((path) => `${path.name} ${percent(path.share)}`).join(", "));
    this.details.hidden = connection.words.length === 0;
    this.words.replaceChildren(...connection.words.map((text) => element("p", "", text)));
  }
}

// What does not work as configured, and what to do about it.
function tell(list, problems) {
  list.replaceChildren(...problems.map((text) => element("li", "", text)));
  list.hidden = problems.length === 0;
}

function forget(cards, present) {
  for (const [name, card] of cards) {
    if (!present.has(name)) {
      card.node.remove();
      cards.delete(name);
    }
  }
}

const cards = new Map();
let shownAt = 0;

function show(state) {
  shownAt = Date.now();
  document.body.classList.remove("stale");
  setText(byId("live"), `live · mpt ${state.version} · running for ${duration(state.uptime)}`);
  const trouble = [
    ...Object.entries(state.failed).map(([name, why]) => `tunnel ${name} does not run: ${why}`),
    ...state.silent.map((name) => `tunnel ${name} does not answer`),
    ...state.tunnels.flatMap((tunnel) => tunnel.problems),
    ...(state.unexplained ? [state.unexplained] : []),
    ...(state.more ? [`${state.more} more connections are not shown`] : []),
  ];
  setText(byId("trouble"), trouble.join(" · "));
  byId("trouble").hidden = trouble.length === 0;
  const present = new Set();
  for (const tunnel of state.tunnels) {
    for (const connection of tunnel.connections) {
      const key = `${tunnel.name}/${connection.name}`;
      present.add(key);
      let card = cards.get(key);
      if (!card) {
        card = new ConnectionCard(connection.name);
        cards.set(key, card);
        byId("connections").append(card.node);
      }
      card.show(tunnel, connection);
    }
  }
  forget(cards, present);
  byId("events").hidden = state.events.length === 0;
  byId("events").querySelector("ol").replaceChildren(...state.events.map((event) =>
    element("li", "", element("span", "", `${duration(event.ago)} ago`), element("div", "", event.text))));
  byId("rights").hidden = Boolean(token);
}

// --- Events of the daemon -----------------------------------------------------------------------------------

let source = null;
let again = null;

function lost(text) {
  document.body.classList.add("stale");
  setText(byId("live"), text);
}

function open() {
  clearTimeout(again);
  source?.close();
  source = new EventSource("/events");
  source.onmessage = (message) => show(JSON.parse(message.data));
  source.onerror = () => {
    lost("the daemon does not answer, or too many of these pages are open: trying again");
    if (source.readyState === EventSource.CLOSED) again = setTimeout(open, AGAIN_MS);
  };
}

function close() {
  clearTimeout(again);
  source?.close();
  source = null;
}

// A page that nobody sees takes no one's place.
document.addEventListener("visibilitychange", () => document.hidden ? close() : open());
addEventListener("hashchange", () => { token = takeToken(); });
setInterval(() => {
  if (source && shownAt && Date.now() - shownAt > STALE_MS) lost("nothing is heard of the daemon: trying again");
}, 1000);
open();
