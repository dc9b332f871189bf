/** What the work returned: text as it is, everything else as JSON. Markdown is shown as text: it came from a program. */

import { CopyButton } from "@/components/CopyButton";

function resultText(result: unknown): string {
  return typeof result === "string" ? result : JSON.stringify(result, null, 2);
}

export function ResultView({ result }: { result: unknown }) {
  const text = resultText(result);
  const prose = typeof result === "string";
  return (
    <div className="relative">
      <pre
        className={`max-h-96 overflow-auto py-3 pr-11 pl-4 break-words whitespace-pre-wrap ${prose ? "font-sans text-sm" : "font-mono text-xs"}`}
      >
        {text}
      </pre>
      <span className="absolute top-1.5 right-1.5">
        <CopyButton text={text} label="Copy the result" />
      </span>
    </div>
  );
}
