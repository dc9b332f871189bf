import type { Schedule } from "@/api/types";
import { Banner } from "@/components/Banner";
import { Button } from "@/components/Button";
import { Time } from "@/components/Time";
import { differences } from "./conflict";
import type { FormValues } from "./formValues";

interface Props {
  before: FormValues;
  values: FormValues;
  theirs: Schedule;
  busy: boolean;
  onLoad: () => void;
  onSaveOver: () => void;
}

/** Somebody else saved the schedule while this form was open: what they changed, and the two ways on. */
export function ConflictNote({ before, values, theirs, busy, onLoad, onSaveOver }: Props) {
  const found = differences(before, values, theirs);
  return (
    <Banner
      tone="warn"
      title="Somebody else changed this schedule while you edited it"
      actions={
        <>
          <Button onClick={onLoad}>Discard mine and load theirs</Button>
          <Button variant="primary" busy={busy} onClick={onSaveOver}>
            Save mine
          </Button>
        </>
      }
    >
      <p>
        Saved <Time at={theirs.updated_at} zone={theirs.zone} seconds />.{" "}
        {found.length === 0 ? "No field here is different." : "They changed:"}
      </p>
      <ul className="mt-1.5 flex flex-col gap-1">
        {found.map((each) => (
          <li key={each.label} className="break-words">
            <span className="font-medium">{each.label}</span>: <del className="text-muted">{each.before}</del> →{" "}
            {each.theirs}
            {each.mine !== null && <span className="text-warn"> (you: {each.mine})</span>}
          </li>
        ))}
      </ul>
      <p className="mt-1.5 text-xs text-muted">Saving keeps their changes to fields that you did not change.</p>
    </Banner>
  );
}
