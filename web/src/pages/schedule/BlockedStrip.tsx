/** What keeps a schedule or a run from going on, without being asked: the root of it in one sentence, the way to it, and
 *  the button and the command that end it. */

import { Link } from "@tanstack/react-router";
import { Fragment, type ReactNode, useState } from "react";
import { type Pressed, useUnblock } from "@/api/queries/blocking";
import { useMay } from "@/api/queries/me";
import { useRun } from "@/api/queries/runs";
import type { BlockedBy } from "@/api/types";
import { Banner } from "@/components/Banner";
import { Button, buttonClass } from "@/components/Button";
import { Command } from "@/components/Command";
import { useProblemToast, useToast } from "@/components/Toast";
import { plainText } from "@/components/output/ansi";
import { useNow } from "@/state/ticker";
import { useZone } from "@/state/zone";
import { inZone } from "@/time/inZone";
import { CancelDialog } from "../run/CancelDialog";
import type { Turning } from "../schedules/useTurning";

/** These are as somebody wants it, or end by themselves: nothing is wrong. */
const CALM: ReadonlySet<BlockedBy["cause"]> = new Set(["off", "delayed", "check_in", "session_busy", "run_active"]);

interface Props {
  blocked: BlockedBy;
  /** Of what is blocked. */
  zone: string | null;
  /** Of a schedule: its switch asks and tells as everywhere. */
  turning?: Turning;
  /** What else can be done about it. */
  actions?: ReactNode;
  /** What more there is to it. */
  children?: ReactNode;
}

export function BlockedStrip({ blocked, zone, turning, actions, children }: Props) {
  const shownIn = useZone().resolve(zone ?? "UTC");
  const now = useNow(60_000);
  const told = inZone(plainText(blocked.sentence), shownIn, now);
  return (
    <Banner
      tone={toneOf(blocked)}
      title={`${told.charAt(0).toUpperCase()}${told.slice(1)}`}
      actions={
        <>
          {blocked.action !== null && <Ending key={blocked.action.verb} action={blocked.action} turning={turning} />}
          {actions}
        </>
      }
    >
      {(blocked.chain.length > 1 || blocked.command !== null) && (
        <div className="mt-1 flex flex-wrap items-center gap-x-3 gap-y-1.5">
          {blocked.chain.length > 1 && <Way chain={blocked.chain} />}
          {blocked.command !== null && <Command text={blocked.command} />}
        </div>
      )}
      {children}
    </Banner>
  );
}

const toneOf = ({ cause }: BlockedBy) => (cause === "broken" ? "bad" : CALM.has(cause) ? "info" : "warn");

/** From what is blocked to the root of it. */
function Way({ chain }: Pick<BlockedBy, "chain">) {
  return (
    <span className="text-muted">
      by way of{" "}
      {chain.map((link, index) => (
        <Fragment key={`${link.kind} ${link.name}`}>
          {index > 0 && " → "}
          <To {...link} />
        </Fragment>
      ))}
    </span>
  );
}

function To({ kind, name }: BlockedBy["chain"][number]) {
  const look = "font-medium text-ink hover:underline";
  const text = `${kind} ${name}`;
  if (kind === "run") return <Link to="/runs/$id" params={{ id: name }} className={look}>{text}</Link>;
  if (kind === "session") return <Link to="/sessions/$key" params={{ key: name }} className={look}>{text}</Link>;
  if (kind === "schedule") return <Link to="/schedules/$name" params={{ name }} className={look}>{text}</Link>;
  return <Link to={kind === "lane" ? "/lanes" : "/nodes"} className={look}>{text}</Link>;
}

type Action = NonNullable<BlockedBy["action"]>;

/** What ends it: the form, or a press here. */
function Ending({ action, turning }: { action: Action; turning?: Turning }) {
  const { verb, target, label } = action;
  if (verb !== "schedule.edit") return <Press action={{ ...action, verb }} turning={turning} />;
  return (
    <Link to="/schedules/$name/edit" params={{ name: target }} className={buttonClass("secondary", "small")}>
      {label}
    </Link>
  );
}

function Press({ action, turning }: { action: Pressed; turning?: Turning }) {
  const may = useMay("operator");
  const unblock = useUnblock();
  const say = useToast();
  const tell = useProblemToast();
  const [asking, setAsking] = useState(false);
  const { verb, target, label } = action;
  const press = (): void => {
    if (verb === "run.cancel") setAsking(true);
    else if (verb === "schedule.enable" && turning !== undefined) turning.turn({ name: target, to: "on" });
    else unblock.mutate(action, { onSuccess: () => say({ title: `${label}: done` }), onError: tell(`${label}: refused`) });
  };
  const busy = unblock.isPending || (verb === "schedule.enable" && turning?.isTurningOn(target) === true);
  return (
    <>
      <Button size="small" why={may.reason} busy={busy} onClick={press}>
        {label}
      </Button>
      {asking && <CancelBlocker id={Number(target)} onClose={() => setAsking(false)} />}
    </>
  );
}

function CancelBlocker({ id, onClose }: { id: number; onClose: () => void }) {
  const run = useRun(id).data;
  return run === undefined ? null : <CancelDialog run={run} onClose={onClose} />;
}
