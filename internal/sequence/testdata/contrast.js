// The value is a list of the page's visible texts, each with the contrast ratio of its color
// and its background: Web Content Accessibility Guidelines 2.2, "contrast ratio".
(() => {
  const channels = (color) => color.match(/[\d.]+/g).map(Number);
  const luminance = ([r, g, b]) => {
    const linear = [r, g, b].map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  };
  const background = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const [r, g, b, alpha = 1] = channels(getComputedStyle(e).backgroundColor);
      if (alpha === 1) return [r, g, b];
    }
    throw new Error("a text without a background");
  };
  const hasText = (e) => [...e.childNodes].some((n) => n.nodeType === Node.TEXT_NODE && n.data.trim());
  return [...document.body.querySelectorAll("*")]
    .filter((e) => hasText(e) && e.checkVisibility() && !e.closest(".seq-spoken"))
    .map((e) => {
      const [light, dark] = [luminance(channels(getComputedStyle(e).color)), luminance(background(e))].sort((a, b) => b - a);
      return {text: e.textContent, ratio: (light + 0.05) / (dark + 0.05)};
    });
})()
