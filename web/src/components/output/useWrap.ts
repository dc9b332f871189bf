import { useRef, useState } from "react";

const MANY = 10_000;

/** Whether long lines are wrapped. Wrapped lines are measured one by one: a very long output begins without, and
 *  anybody may choose. Decided when the first of it is here: an output that grows must not change under the eyes of
 *  whoever reads it. */
export function useWrap(count: number, loading: boolean): [boolean, (wrap: boolean) => void] {
  const [chosen, setChosen] = useState<boolean | null>(null);
  const isShort = useRef(true);
  const isDecided = useRef(false);
  if (!isDecided.current) isShort.current = count <= MANY;
  isDecided.current = !loading;
  return [chosen ?? isShort.current, setChosen];
}
