// Runs before anything is drawn: light or dark as the machine says, or as was chosen here.
const wished = localStorage.getItem("tocsin.theme");
const isDark = matchMedia("(prefers-color-scheme: dark)").matches;
document.documentElement.dataset.theme = wished ?? (isDark ? "dark" : "light");
