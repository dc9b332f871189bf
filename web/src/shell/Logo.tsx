/** The sign of the house: a phrase that repeats. */

export function Logo() {
  return (
    <span className="flex items-center gap-2 font-semibold tracking-tight">
      <svg aria-hidden="true" width={22} height={22} viewBox="0 0 32 32">
        <rect width="32" height="32" rx="8" className="fill-accent" />
        <g fill="none" strokeWidth="2.8" strokeLinecap="round" className="stroke-accent-ink">
          <path d="M9 12v8M16 8v16M23 12v8" />
        </g>
      </svg>
      Ostinato
    </span>
  );
}
