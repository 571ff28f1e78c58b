// The contents stand open where there is room beside the text. What has to be scrolled can be scrolled with the keys.
const contents = document.querySelector(".contents details");
if (contents) contents.open = matchMedia("(min-width: 75rem)").matches;

function reachable() {
  for (const part of document.querySelectorAll("pre, .html, .formula, .scroll, .prose table")) {
    if (part.scrollWidth > part.clientWidth) part.tabIndex = 0;
    else part.removeAttribute("tabindex");
  }
}
reachable();
addEventListener("resize", reachable);
document.fonts.ready.then(reachable);
