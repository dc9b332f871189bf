/** Who am I, and what may I do. */

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, dataOf } from "@/api/client";
import { keys } from "@/api/keys";
import { mounted } from "@/api/mount";
import { keepOriginKey } from "@/api/originKey";
import type { Me, Role } from "@/api/types";

const RANK: Record<Role, number> = { viewer: 0, operator: 1, admin: 2 };

export function fetchMe(): Promise<Me> {
  return dataOf(api.GET("/api/me"));
}

export function useMe() {
  return useQuery({ queryKey: keys.me, queryFn: fetchMe, staleTime: 5 * 60_000 });
}

export interface Permission {
  allowed: boolean;
  /** Why not, in words for a tooltip; undefined when it is allowed. */
  reason: string | undefined;
}

/** Whether the role of whoever is logged in is enough for the deed. */
export function useMay(role: Role, deed = "do this"): Permission {
  const me = useMe().data;
  const allowed = me !== undefined && RANK[me.role] >= RANK[role];
  if (allowed || me === undefined) return { allowed, reason: undefined };
  const who = role === "admin" ? "Only an admin" : "Only an operator or an admin";
  return { allowed, reason: `${who} may ${deed}; you are ${me.role === "viewer" ? "a" : "an"} ${me.role}.` };
}

export function useLogin() {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: (secret: { code: string } | { token: string }) => dataOf(api.POST("/api/login", { body: secret })),
    onSuccess: ({ origin_key, ...me }) => {
      keepOriginKey(origin_key);
      cache.clear();
      cache.setQueryData(keys.me, me);
    },
  });
}

export function useLogout() {
  return useMutation({
    mutationFn: () => dataOf(api.POST("/api/logout")),
    onSuccess: () => {
      keepOriginKey(null);
      // A page that is loaded anew holds nothing of the one who left.
      window.location.assign(mounted("/login"));
    },
  });
}
