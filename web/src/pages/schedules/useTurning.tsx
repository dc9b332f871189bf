import { type ReactNode, useCallback, useState } from "react";
import { TurnOff } from "./TurnOff";
import { TurnOn } from "./TurnOn";

/** What a switch or a button asks for. */
export interface Turn {
  name: string;
  to: "on" | "off";
}

export interface Turning {
  turn: (wanted: Turn) => void;
  /** It is being switched on, and is shown so until the server has said no. */
  isTurningOn: (name: string) => boolean;
  dialogs: ReactNode;
}

/** Carries out what switches and buttons ask for. It lives with the page: a row may move out of sight while somebody
 *  types a reason. */
export function useTurning(): Turning {
  const [turns, setTurns] = useState<readonly Turn[]>([]);
  const turn = useCallback(
    (wanted: Turn) =>
      setTurns((before) => (before.some((each) => each.name === wanted.name) ? before : [...before, wanted])),
    [],
  );
  const done = useCallback((name: string) => setTurns((before) => before.filter((each) => each.name !== name)), []);
  return {
    turn,
    isTurningOn: (name) => turns.some((each) => each.name === name && each.to === "on"),
    dialogs: turns.map(({ name, to }) =>
      to === "off" ? (
        <TurnOff key={name} name={name} onDone={() => done(name)} />
      ) : (
        <TurnOn key={name} name={name} onDone={() => done(name)} />
      ),
    ),
  };
}
