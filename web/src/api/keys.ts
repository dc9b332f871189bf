/** The keys of everything that is kept in the query cache; the first part is the noun that live events invalidate. */

export const keys = {
  me: ["me"] as const,
  overview: ["overview"] as const,
  schedules: ["schedules"] as const,
  schedule: (ref: string) => ["schedules", "one", ref] as const,
  runs: ["runs"] as const,
  run: (id: number) => ["runs", "one", id] as const,
  timeline: ["timeline"] as const,
  lanes: ["lanes"] as const,
  sessions: ["sessions"] as const,
  session: (key: string) => ["sessions", "one", key] as const,
  nodes: ["nodes"] as const,
  projects: ["projects"] as const,
  tasks: ["tasks"] as const,
  kinds: ["kinds"] as const,
  tokens: ["tokens"] as const,
  logins: ["logins"] as const,
  audit: ["audit"] as const,
  timings: ["timings"] as const,
};
