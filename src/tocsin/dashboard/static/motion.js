/** Whether somebody wants to see nothing move that need not. */

const wish = globalThis.matchMedia?.("(prefers-reduced-motion: reduce)");

export const isStill = () => wish?.matches ?? false;
