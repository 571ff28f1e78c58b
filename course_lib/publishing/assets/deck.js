// The back row reads large letters best: each slide takes the largest font size at which all of it fits.
(async () => {
  const [WIDTH, HEIGHT, LARGEST, SMALLEST] = [1280, 720, 28, 14];

  function fits(slide) {
    const parts = [...slide.querySelectorAll("pre, .html, .formula, .prose")];
    return slide.scrollHeight <= HEIGHT && parts.every((part) => part.scrollWidth <= part.clientWidth + 1);
  }

  function fit(slide) {
    for (let size = LARGEST; size >= SMALLEST; size -= 0.5) {
      slide.style.fontSize = `${size}px`;
      if (fits(slide)) return;
    }
  }

  await Promise.all([...document.fonts].map((font) => font.load()));
  document.body.classList.add("measuring");
  document.querySelectorAll("section.leaf").forEach(fit);
  document.body.classList.remove("measuring");
  await Reveal.initialize({
    width: WIDTH, height: HEIGHT, margin: 0, maxScale: 4, center: false, hash: true, transition: "none",
    slideNumber: "c/t", pdfSeparateFragments: false, pdfMaxPagesPerSlide: 1, plugins: [RevealNotes],
    defaultTiming: 60, // switches on the pace in the speaker view; each slide has its own data-timing
  });
})();
