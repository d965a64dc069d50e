// Put at the end of a copy of the page by a test: what the browser made of every drawing.
for (const details of document.querySelectorAll("details")) details.open = true;
const measured = [];
for (const svg of document.querySelectorAll("svg")) {
  const box = svg.getBoundingClientRect();
  const count = (selector) => svg.querySelectorAll(selector).length;
  const faults = [];
  const texts = [...svg.querySelectorAll("text")].map((text) => ({
    words: text.textContent, turned: text.hasAttribute("transform"), box: text.getBoundingClientRect(),
  }));
  for (const { words, box: text } of texts) {
    if (text.width === 0 || text.height === 0) faults.push(`no room for '${words}'`);
    if (text.left < box.left - 1 || text.right > box.right + 1 || text.top < box.top - 1 || text.bottom > box.bottom + 1)
      faults.push(`'${words}' leaves the drawing`);
  }
  // Boxes of slanted texts overlap although the letters do not.
  const upright = texts.filter((text) => !text.turned);
  for (let one = 0; one < upright.length; one++)
    for (let other = one + 1; other < upright.length; other++) {
      const [a, b] = [upright[one].box, upright[other].box];
      const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (across > 0.5 && down > 3) faults.push(`'${upright[one].words}' lies on '${upright[other].words}'`);
    }
  let empty = 0;
  for (const shape of svg.querySelectorAll("path,rect")) {
    const size = shape.getBoundingClientRect();
    if (size.width === 0 && size.height === 0) empty++;
  }
  measured.push({
    id: svg.getAttribute("aria-labelledby").split("-title")[0],
    width: box.width, height: box.height, faults, empty,
    lines: count(".series .line"), marks: count(".series .mark"), bars: count(".series .bar"),
    whiskers: count(".whisker"), fields: count(".field"), published: count(".published") - count(".legend .published"),
    title: svg.querySelector("title").textContent, description: svg.querySelector("desc").textContent,
  });
}
const ids = [...document.querySelectorAll("[id]")].map((element) => element.id);
const result = document.createElement("pre");
result.id = "measured";
result.textContent = JSON.stringify({
  drawings: measured, scripts: document.scripts.length - 1, duplicates: ids.length - new Set(ids).size,
  width: document.documentElement.scrollWidth, window: innerWidth,
  broken: [...document.querySelectorAll("a[href^='#']")].filter((a) => !document.getElementById(a.getAttribute("href").slice(1))).length,
});
document.body.replaceChildren(result);
