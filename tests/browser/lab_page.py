"""What the browser tests do with a notebook that is open in JupyterLab, whose application the server exposes."""
import contextlib
from pathlib import Path

from conftest import Lab
from playwright.sync_api import Browser, Page, TimeoutError

NOTICES = ".jp-Dialog, .Toastify__toast, .jp-toast"
SECONDS = 1000  # in Playwright's milliseconds
OPEN = """() => {
  const panel = window.jupyterapp && window.jupyterapp.shell.currentWidget;
  return panel && panel.sessionContext && panel.context.isReady && panel.content.widgets.length > 1
    && panel.sessionContext.session && panel.sessionContext.session.kernel
    && panel.sessionContext.session.kernel.status === 'idle';
}"""
CELLS = """() => window.jupyterapp.shell.currentWidget.content.widgets
  .filter(cell => cell.model.type === 'code')
  .map(cell => {
    const {metadata, source, execution_count, outputs} = cell.model.toJSON();
    return {tags: metadata.tags || [], source: source, count: execution_count,
            errors: outputs.filter(output => output.output_type === 'error').length,
            texts: outputs.map(output => [].concat((output.data || {})['text/plain'] || output.text || []).join(''))};
  })"""
DONE = """() => {
  const panel = window.jupyterapp.shell.currentWidget;
  return panel.sessionContext.session.kernel.status === 'idle'
    && panel.content.widgets.every(cell => cell.model.type !== 'code' || cell.model.executionCount !== null);
}"""
FIRST_WITH = """name => {
  const notebook = window.jupyterapp.shell.currentWidget.content;
  notebook.activeCellIndex = notebook.widgets.findIndex(cell => cell.model.sharedModel.getSource().includes(name));
  return notebook.scrollToItem(notebook.activeCellIndex, 'center').then(() => notebook.activeCellIndex);
}"""
SCROLL = """place => {
  const scroller = document.querySelector('.jp-WindowedPanel-outer');
  scroller.scrollTo(0, place);
  return [scroller.clientHeight, scroller.scrollHeight];
}"""
TRUSTED = "() => window.jupyterapp.shell.currentWidget.content.activeCell.model.trusted"


class LabPage:
    """One notebook in one browser window, with all that the browser complained about."""

    def __init__(self, browser: Browser, lab: Lab, filename: str, width: int = 1280, height: int = 720):
        self.page: Page = browser.new_page(viewport={"width": width, "height": height})
        self.complaints: list[str] = []
        self.page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        self.page.on("console", lambda said: self.complaints.append(said.text) if said.type == "error" else None)
        self.page.goto(lab.address(filename), timeout=120 * SECONDS)
        self.page.wait_for_function(OPEN, timeout=120 * SECONDS)

    def do(self, command: str, **arguments: object) -> None:
        """Run one of JupyterLab's commands, and wait until it is done."""
        execute = "([id, args]) => window.jupyterapp.commands.execute(id, args).then(() => null)"
        self.page.evaluate(execute, [command, arguments])

    def run_all(self) -> list[dict]:
        """Run → Run All Cells, in the kernel that opening the notebook has started; what each code cell then holds."""
        self.do("notebook:run-all-cells")
        with contextlib.suppress(TimeoutError):  # a cell that never ran: what is returned shows which
            self.page.wait_for_function(DONE, timeout=90 * SECONDS)
        return self.code_cells()

    def code_cells(self) -> list[dict]:
        return self.page.evaluate(CELLS)

    def notices(self) -> list[str]:
        """The texts of dialogs, pop-ups and notifications."""
        return self.page.locator(NOTICES).all_inner_texts()

    def go_to(self, text: str) -> None:
        """Make the first cell that contains `text` the active one."""
        assert self.page.evaluate(FIRST_WITH, text) >= 0

    def trusts_active_cell(self) -> bool:
        return self.page.evaluate(TRUSTED)

    def answer(self, stub_has: str, source: str) -> None:
        """Write an answer into the cell that contains `stub_has`, and run that cell."""
        self.go_to(stub_has)
        put = "source => window.jupyterapp.shell.currentWidget.content.activeCell.model.sharedModel.setSource(source)"
        self.page.evaluate(put, source)
        self.do("notebook:run-cell")
        self.page.wait_for_function(DONE, timeout=60 * SECONDS)

    def output_of_active_cell(self):
        return self.page.locator(".jp-Notebook-cell.jp-mod-active .jp-OutputArea-output")

    def pictures_of_all(self, folder: Path, name: str, width: int, height: int) -> list[Path]:
        """The whole notebook in a window of this size, one picture a screenful; those of an earlier run go."""
        for old in folder.glob(f"{name}_*.png"):
            old.unlink()
        self.page.set_viewport_size({"width": width, "height": height})
        taken, place, end = [], 0, 1
        while place < end:
            shown, end = self.scroll_to(place)
            taken.append(folder / f"{name}_{len(taken) + 1:02d}.png")
            self.page.screenshot(path=taken[-1])
            place += shown
        return taken

    def scroll_to(self, place: int) -> tuple[int, int]:
        """Scroll the notebook to `place`; how much of it is then shown, and how long it is, in pixels."""
        self.page.evaluate(SCROLL, place)
        self.page.wait_for_timeout(700)  # JupyterLab draws cells when they come into view
        return tuple(self.page.evaluate(SCROLL, place))

    def close(self) -> None:
        self.page.close()
