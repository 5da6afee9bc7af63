/** Saying something to who listens to a page instead of looking at it, without talking all the time. */

/** A function that hands texts on to `say`, one in `everyMs` at most: of those that come faster only the newest. */
export function paced(say, everyMs) {
  let newest = null; // and not said yet
  let isResting = false;
  const speak = () => {
    isResting = newest !== null;
    if (!isResting) return;
    const text = newest;
    newest = null;
    say(text);
    setTimeout(speak, everyMs);
  };
  return (text) => {
    newest = text;
    if (!isResting) speak();
  };
}
