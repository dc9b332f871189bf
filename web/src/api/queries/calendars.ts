/** Calendars: named sets of dates on which schedules are not due. */

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, dataOf, ProblemError } from "@/api/client";
import { keys } from "@/api/keys";
import type { Calendar } from "@/api/types";

const TRIES = 5;
const at = (name: string) => ({ path: { name } });

export function useCalendars() {
  return useQuery({
    queryKey: keys.calendars,
    queryFn: ({ signal }) => dataOf(api.GET("/api/calendars", { signal })),
    refetchInterval: 10_000,
  });
}

/** After a change: the schedules that use it were planned anew, and what is due may be another. */
function useSettled() {
  const cache = useQueryClient();
  return (): void => {
    for (const queryKey of [keys.calendars, keys.schedules, keys.overview, keys.timeline, keys.timings])
      void cache.invalidateQueries({ queryKey });
  };
}

/** Somebody else was faster. */
const isOvertaken = (error: unknown): boolean => error instanceof ProblemError && error.status === 409;

/** Makes a calendar, or answers null where there is one of that name. */
export function useMakeCalendar() {
  const settled = useSettled();
  return useMutation({
    mutationFn: async ({ name, dates, note }: { name: string; dates: string[]; note: string }) => {
      try {
        return await dataOf(api.PUT("/api/calendars/{name}", { params: at(name), body: { dates, note, version: 0 } }));
      } catch (error) {
        if (isOvertaken(error)) return null;
        throw error;
      }
    },
    onSettled: settled,
  });
}

export interface CalendarChange {
  name: string;
  added: readonly string[];
  removed: readonly string[];
  /** Left out, it stays as it is. */
  note?: string;
}

/** Changes the calendar that there is by now: dates that somebody else added or removed meanwhile stay so. */
export function useChangeCalendar() {
  const settled = useSettled();
  return useMutation({
    mutationFn: async ({ name, added, removed, note }: CalendarChange): Promise<Calendar> => {
      for (let tries = 1; ; tries += 1) {
        const { dates: known, version } = await dataOf(api.GET("/api/calendars/{name}", { params: at(name) }));
        const dates = [...new Set([...known, ...added])].filter((date) => !removed.includes(date));
        try {
          return await dataOf(api.PUT("/api/calendars/{name}", { params: at(name), body: { dates, note, version } }));
        } catch (error) {
          if (!isOvertaken(error) || tries === TRIES) throw error;
        }
      }
    },
    onSettled: settled,
  });
}

export function useRemoveCalendar() {
  const settled = useSettled();
  return useMutation({
    mutationFn: ({ name }: { name: string }) => dataOf(api.DELETE("/api/calendars/{name}", { params: at(name) })),
    onSettled: settled,
  });
}
