// Runs before anything is drawn: light or dark as the machine says, also when that changes, or as was chosen here.
const machine = matchMedia("(prefers-color-scheme: dark)");
const setTheme = () => (document.documentElement.dataset.theme = localStorage.getItem("tocsin.theme") ?? (machine.matches ? "dark" : "light"));
setTheme();
machine.addEventListener("change", () => {
  setTheme();
  dispatchEvent(new Event("tocsin-theme"));
});
