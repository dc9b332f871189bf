/** The shapes of the REST interface by the words of the design. They are those of the server's OpenAPI document
 *  (`npm run types` makes schema.ts of it); here they only get their names, and what the document cannot say. */

import type { components } from "@/api/schema";

type Schemas = components["schemas"];

export type Run = Schemas["Run"];
export type RunState = Run["state"];
export type Trigger = Run["trigger"];
export type Cause = Schemas["Cause"];
export type Attempt = Schemas["Attempt"];
export type Progress = Schemas["Progress"];
export type RecentRun = Schemas["RecentRun"];
export type OutputLine = Schemas["Line"];
export type Lines = Schemas["Lines"];

export type Role = Me["role"];
export type Me = Schemas["Me"];
export type Login = Schemas["Login"];
export type Token = Schemas["Token"];
export type MadeToken = Schemas["MadeToken"];
export type AuditEntry = Schemas["AuditEntry"];

export type FunctionWork = Schemas["FunctionWork"];
export type ShellWork = Schemas["ShellWork"];
export type AgentWork = Schemas["AgentWork"];
export type HttpWork = Schemas["HttpWork"];
export type UnreadableWork = Schemas["UnreadableWork"];
export type Work = Run["work"];
export type NewWork = NewSchedule["work"];
export type Kind = Schemas["Kind"];
export type KindField = Schemas["KindField"];
/** Of a kind that a package adds, which the document of this page does not know: its fields, and its line. */
export type AddedWork = { kind: string; line: string } & Record<string, unknown>;

export type Policy = Schemas["Policy"];
export type NewPolicy = Schemas["NewPolicy"];
export type Overlap = Policy["overlap"];
export type Retry = Schemas["Retry"];
export type Budget = Schemas["Budget"];

export type Schedule = Schemas["Schedule"];
export type NewSchedule = Schemas["NewSchedule"];
export type FieldChange = Schemas["FieldChange"];
export type ScheduleChanges = Schemas["ScheduleChanges"];
export type TimingPreview = Schemas["Preview"];
export type Why = Schemas["Why"];
export type BlockedBy = Schemas["BlockedBy"];
export type Relations = Schemas["Relations"];
export type RunRelations = Schemas["RunRelations"];
export type NextTimes = Schemas["NextTimes"];
export type Backfill = Schemas["Backfill"];
export type BackfillAnswer = Schemas["BackfillAnswer"];
export type Bulk = Schemas["Bulk"];
export type BulkAnswer = Schemas["BulkAnswer"];
export type HistoryDay = Omit<Schemas["HistoryDay"], "states"> & { states: Partial<Record<RunState, number>> };
export type History = Omit<Schemas["History"], "days"> & { days: HistoryDay[] };

export type Calendar = Schemas["Calendar"];
export type Lane = Schemas["Lane"];
export type Session = Schemas["Session"];
export type SessionEvent = Schemas["Event"];
export type NewMessage = Schemas["NewMessage"];
export type Stopped = Schemas["Stopped"];
export type Project = Schemas["Project"];

export type Incident = Schemas["Incident"];
export type IncidentDetail = Schemas["IncidentDetailAnswer"];
export type Delivery = Schemas["Delivery"];
export type Channel = Schemas["ChannelStatus"];
export type NewChannel = Schemas["NewChannel"];
export type Rule = Schemas["ChannelRule"];
export type NewRule = Schemas["NewRule"];
export type NoticeKind = NonNullable<NewRule["on"]>[number];

export interface ServiceHealth {
  up: boolean;
  restarts: number;
  error: string | null;
}

export type Node = Omit<Schemas["Node"], "services"> & { services: Record<string, ServiceHealth> };

export type DueTime = Schemas["DueTime"];
export type ActivityBucket = Omit<Schemas["Bucket"], "states"> & { states: Partial<Record<RunState, number>> };
export type Overview = Omit<Schemas["Overview"], "activity"> & { activity: ActivityBucket[] };
export type Timeline = Schemas["Timeline"];
export type TimelineStretch = Schemas["TimelineStretch"];
export type DueStretch = Schemas["DueStretch"];
export type TimelineRun = Schemas["TimelineRun"];

/** One field that the server did not take, or that the page itself found wrong before it asked.
 *  `position` counts characters from the start of a timing. */
export interface FieldProblem {
  field: string | null;
  message: string;
  hint?: string | null;
  position?: number | null;
}

/** RFC 9457. */
export interface Problem {
  type: string;
  title: string;
  status: number;
  detail?: string;
  errors?: FieldProblem[];
  checks?: Record<string, string> | null;
  version?: number | null;
}

export interface Page<T> {
  items: T[];
  next: string | null;
  total?: number;
}

export type LiveKind =
  | "run_queued"
  | "run_started"
  | "run_progress"
  | "run_finished"
  | "schedule_changed"
  | "schedule_broken"
  | "schedule_removed"
  | "session_event"
  | "incident_opened"
  | "incident_changed"
  | "incident_closed";

/** A run as the live stream tells it. */
export type LiveRun = Omit<Run, "work" | "result" | "attempts">;

export interface LiveEvent {
  kind: LiveKind;
  at: string;
  run: LiveRun | null;
  schedule: string | null;
  session: string | null;
  data: Record<string, unknown>;
}
