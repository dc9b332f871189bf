// Runs before the first paint, in a file of its own: the server's policy allows no inline script.
// state/theme.ts does the same when the choice changes.
(function () {
  var choice = null;
  try {
    choice = localStorage.getItem("ostinato.theme");
  } catch (error) {
    // Storage may be closed to us; the system's choice serves.
  }
  var dark = choice === "dark" || (choice !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.dataset.theme = dark ? "dark" : "light";
})();
