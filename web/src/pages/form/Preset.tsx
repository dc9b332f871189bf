/** A timing, or off, with one press. */
export function Preset(props: { label: string; pressed: boolean; why?: string; onClick: () => void }) {
  const { label, pressed, why, onClick } = props;
  return (
    <button
      type="button"
      aria-pressed={pressed}
      aria-disabled={why !== undefined || undefined}
      title={why}
      onClick={() => why === undefined && onClick()}
      className="h-7 rounded-full border border-line-strong px-3 text-xs font-medium hover:bg-sunken aria-pressed:border-accent aria-pressed:bg-accent aria-pressed:text-accent-ink aria-disabled:opacity-60 pointer-coarse:h-9"
    >
      {label}
    </button>
  );
}
