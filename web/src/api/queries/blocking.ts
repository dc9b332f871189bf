/** What ends a wait: the verb that the server names, carried out. */

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { api, dataOf } from "@/api/client";
import { keys } from "@/api/keys";
import type { BlockedBy } from "@/api/types";

type Action = NonNullable<BlockedBy["action"]>;

/** Schedules and runs that wait are asked about again so often: nobody tells of a lane that is resumed, or of a node. */
export const ASK_AGAIN = 5_000;

/** What a press does here; another timing is given in the form. */
export type Pressed = Action & { verb: Exclude<Action["verb"], "schedule.edit"> };

function carryOut({ verb, target, arguments: body }: Pressed): Promise<unknown> {
  const name = { path: { name: target } };
  switch (verb) {
    case "lane.resume":
      return dataOf(api.POST("/api/lanes/{name}/resume", { params: name }));
    case "lane.set":
      return dataOf(api.PUT("/api/lanes/{name}", { params: name, body }));
    case "node.resume":
      return dataOf(api.POST("/api/nodes/{id}/resume", { params: { path: { id: target } } }));
    case "run.cancel":
      return dataOf(api.POST("/api/runs/{id}/cancel", { params: { path: { id: Number(target) } }, body: {} }));
    case "schedule.enable":
      return dataOf(api.POST("/api/schedules/{ref}/enable", { params: { path: { ref: target } } }));
  }
}

export function useUnblock() {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: carryOut,
    onSettled: () => {
      for (const queryKey of [keys.schedules, keys.runs, keys.lanes, keys.nodes, keys.overview]) {
        void cache.invalidateQueries({ queryKey });
      }
    },
  });
}
