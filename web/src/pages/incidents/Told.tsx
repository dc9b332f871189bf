/** What was told of an incident, to whom, and what became of it. */

import type { Delivery } from "@/api/types";
import { Badge, type BadgeTone } from "@/components/Badge";
import { Ago, Time } from "@/components/Time";

const TONES: Record<Delivery["state"], BadgeTone> = {
  pending: "wait",
  sending: "info",
  sent: "good",
  failed: "bad",
  dropped: "quiet",
};

export function Told({ deliveries }: { deliveries: readonly Delivery[] }) {
  if (deliveries.length === 0) return <p className="text-xs text-muted">Nobody was told of it.</p>;
  return (
    <ul aria-label="Told" className="flex flex-col gap-1">
      {deliveries.map((delivery) => (
        <li key={delivery.id} className="flex flex-wrap items-center gap-x-2 gap-y-0.5 text-xs">
          <span className="font-medium">{delivery.channel}</span>
          <span className="text-muted">{delivery.kind}</span>
          <Badge tone={TONES[delivery.state]}>{delivery.state}</Badge>
          <span className="text-muted">
            <Ago at={delivery.sent_at ?? delivery.at} />
          </span>
          {delivery.waits != null && <Waits waits={delivery.waits} />}
          {delivery.error !== null && <span className="min-w-0 break-words text-bad">{delivery.error}</span>}
        </li>
      ))}
    </ul>
  );
}

/** Why it is not sent yet, and until when. */
function Waits({ waits }: { waits: NonNullable<Delivery["waits"]> }) {
  return (
    <span className="text-muted">
      waits: {waits.text}
      {waits.until !== null && (
        <>
          , until <Time at={waits.until} />
        </>
      )}
    </span>
  );
}
