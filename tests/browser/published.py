"""What the browser tests do with a deck or a page that lies in a folder, with the network off."""
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path

from playwright.sync_api import Browser, BrowserContext, Page

SECONDS = 1000  # in Playwright's milliseconds
PATIENCE = 300 * SECONDS  # a machine may be slow; what is waited for comes at once on any other
READY = "() => window.Reveal && Reveal.isReady()"
# Each slide as the hall sees it in the end, with all of its fragments: what it measures, and what is wrong with it.
WALK = """() => [...document.querySelectorAll('section.leaf')].map(leaf => {
  const {h, v} = Reveal.getIndices(leaf);
  Reveal.slide(h, v, 99);
  const content = document.createRange();
  content.selectNodeContents(leaf);
  const {left, top, right, bottom} = content.getBoundingClientRect();
  const cut = [...leaf.querySelectorAll('pre, .html, .formula, .prose')].filter(p => p.scrollWidth > p.clientWidth + 1);
  const sizes = [...leaf.querySelectorAll('math')].map(math => math.getBoundingClientRect());
  return {
    cell: Number(leaf.dataset.cell), shown: leaf === Reveal.getCurrentSlide() && leaf.offsetHeight > 0,
    fits: left >= 0 && top >= 0 && right <= 1281 && bottom <= 721 && cut.length === 0,
    letters: parseFloat(getComputedStyle(leaf).fontSize),
    hidden: leaf.querySelectorAll('.fragment:not(.visible)').length,
    formulas: sizes.filter(size => size.width > 2 && size.height > 5).length,
    notes: leaf.querySelector('aside.notes').textContent.replace(/\\s+/g, ' ').trim(),
    pictures: [...leaf.querySelectorAll('img')].map(image => [image.naturalWidth, image.alt]),
  };
})"""
# Of each kind of word in code three stay: axe-core compares every single one with its ground, which takes minutes.
THIN = """() => {
  const seen = {};
  for (const word of document.querySelectorAll('pre.code span')) {
    seen[word.className] = (seen[word.className] || 0) + 1;
    if (seen[word.className] > 3) word.replaceWith(...word.childNodes);
  }
}"""
AXE = """async colours => (await axe.run(document, {
    resultTypes: ['violations'], rules: {'color-contrast': {enabled: colours}}})).violations
  .filter(one => ['serious', 'critical'].includes(one.impact))
  .map(one => one.id + ': ' + one.nodes.map(node => node.target.join(' ')).slice(0, 3).join(', '))"""


@dataclass
class Offline:
    """A window whose network is off, and all that went wrong in it: complaints, failures, requests that leave."""

    context: BrowserContext
    page: Page
    folder: Path
    trouble: list[str] = field(default_factory=list)

    def open(self, name: str, query: str = "") -> None:
        self.page.goto(f"{(self.folder / name).as_uri()}{query}", timeout=PATIENCE)
        if self.page.locator(".reveal").count():
            self.page.wait_for_function(READY, timeout=PATIENCE)

    def walk(self) -> list[dict]:
        """All slides of the deck that is open."""
        return self.page.evaluate(WALK)

    def violations(self, colours: bool = True) -> list[str]:
        """What axe-core finds serious or critical in all that the page shows; to compare `colours` takes longest."""
        self.page.evaluate(THIN)
        self.page.add_script_tag(path=str(files("axe_playwright_python") / "axe.min.js"))
        return self.page.evaluate(AXE, colours)

    def note(self, request) -> None:
        if not request.url.startswith((self.folder.as_uri(), "data:", "about:", "blob:")):
            self.trouble.append(f"asks for {request.url}")


@contextmanager
def offline(browser: Browser, folder: Path, width: int = 1280, height: int = 720) -> Iterator[Offline]:
    """A window for what lies in `folder`."""
    context = browser.new_context(viewport={"width": width, "height": height}, offline=True)
    context.set_default_timeout(PATIENCE)
    window = Offline(context, context.new_page(), folder)
    context.on("request", window.note)
    context.on("requestfailed", lambda request: window.trouble.append(f"fails: {request.url}"))
    context.on("console", lambda said: window.trouble.append(said.text) if said.type in ("error", "warning") else None)
    context.on("weberror", lambda error: window.trouble.append(str(error.error)))
    yield window
    context.close()
