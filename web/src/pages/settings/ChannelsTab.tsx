/** Channels and rules: who is told, and of what. */

import { useState } from "react";
import { useChannels, useRemoveChannel, useTestChannel } from "@/api/queries/channels";
import { useMay } from "@/api/queries/me";
import type { Channel } from "@/api/types";
import { Badge } from "@/components/Badge";
import { Button } from "@/components/Button";
import { Card } from "@/components/Card";
import { ConfirmDialog } from "@/components/ConfirmDialog";
import { EmptyState } from "@/components/EmptyState";
import { IconButton } from "@/components/IconButton";
import { QueryView } from "@/components/QueryView";
import { Ago } from "@/components/Time";
import { useProblemToast, useToast } from "@/components/Toast";
import { ChannelDialog } from "@/pages/settings/ChannelDialog";
import { RulesCard } from "@/pages/settings/RulesCard";

export function ChannelsTab() {
  const channels = useChannels();
  const admin = useMay("admin");
  const [making, setMaking] = useState(false);
  const [editing, setEditing] = useState<Channel | null>(null);
  const [removing, setRemoving] = useState<Channel | null>(null);
  return (
    <div className="grid gap-4">
      <Card
        title="Channels"
        actions={
          <Button size="small" variant="primary" icon="plus" why={admin.reason} onClick={() => setMaking(true)}>
            New channel
          </Button>
        }
        flush
      >
        <QueryView query={channels}>
          {({ items }) =>
            items.length === 0 ? (
              <EmptyState
                icon="bell"
                title="No channels yet"
                text="A channel is a way to reach people: mail, a chat, a phone."
                command="ostinato notify add phone URL"
              />
            ) : (
              <ul aria-label="Channels" className="divide-y divide-line">
                {items.map((channel) => (
                  <ChannelRow
                    key={channel.name}
                    channel={channel}
                    onEdit={() => setEditing(channel)}
                    onRemove={() => setRemoving(channel)}
                  />
                ))}
              </ul>
            )
          }
        </QueryView>
      </Card>
      <RulesCard channels={channels.data?.items.map(({ name }) => name) ?? []} />
      {making && <ChannelDialog channel={null} onClose={() => setMaking(false)} />}
      {editing !== null && <ChannelDialog channel={editing} onClose={() => setEditing(null)} />}
      {removing !== null && <RemoveDialog channel={removing} onClose={() => setRemoving(null)} />}
    </div>
  );
}

interface ChannelRowProps {
  channel: Channel;
  onEdit: () => void;
  onRemove: () => void;
}

function ChannelRow({ channel, onEdit, onRemove }: ChannelRowProps) {
  const admin = useMay("admin");
  const details = [
    channel.note,
    channel.quiet && `quiet ${channel.quiet} (${channel.zone})`,
    channel.digest && `digest ${channel.digest} (${channel.zone})`,
  ].filter(Boolean);
  return (
    <li className="flex flex-wrap items-center gap-x-4 gap-y-1 px-4 py-2.5 text-sm">
      <span className="min-w-0 flex-1 basis-48 max-sm:basis-full">
        <span className="mr-2 font-medium break-all">{channel.name}</span>
        <code className="font-mono text-xs break-all text-muted">{channel.url}</code>
        {details.length > 0 && <span className="block text-xs text-muted">{details.join(" · ")}</span>}
        {channel.error !== null && <span className="block text-xs break-words text-bad">{channel.error}</span>}
      </span>
      {channel.failures > 0 && <Badge tone="bad">failing</Badge>}
      <span className="text-xs text-muted">
        {channel.sent_at === null ? (
          "nothing sent yet"
        ) : (
          <>
            sent <Ago at={channel.sent_at} />
          </>
        )}
      </span>
      <SendTest name={channel.name} />
      <IconButton icon="edit" label={`Change channel ${channel.name}`} why={admin.reason} onClick={onEdit} />
      <IconButton
        icon="trash"
        label={`Remove channel ${channel.name}`}
        tone="danger"
        why={admin.reason}
        onClick={onRemove}
      />
    </li>
  );
}

function SendTest({ name }: { name: string }) {
  const may = useMay("operator");
  const test = useTestChannel();
  const say = useToast();
  const problem = useProblemToast();
  const press = (): void =>
    test.mutate(
      { name },
      {
        onSuccess: ({ state, error }) =>
          state === "sent"
            ? say({ title: `A test was sent to ${name}`, tone: "good" })
            : say({
                title: state === "failed" ? `The test could not be sent to ${name}` : `The test for ${name} waits`,
                text: error ?? "A running engine sends it.",
                tone: state === "failed" ? "bad" : "info",
              }),
        onError: problem(`The test could not be sent to ${name}`),
      },
    );
  return (
    <Button
      size="small"
      icon="send"
      aria-label={`Send a test to ${name}`}
      why={may.reason}
      busy={test.isPending}
      onClick={press}
    >
      Send a test
    </Button>
  );
}

function RemoveDialog({ channel, onClose }: { channel: Channel; onClose: () => void }) {
  const remove = useRemoveChannel();
  const [force, setForce] = useState(false);
  return (
    <ConfirmDialog
      open
      onOpenChange={(open) => !open && onClose()}
      title={`Remove channel ${channel.name}?`}
      text="Its rules are removed with it, and what was still to be sent there is dropped."
      action="Remove channel"
      danger
      onConfirm={() => remove.mutateAsync({ name: channel.name, force })}
    >
      <label className="flex items-center gap-2 text-sm">
        <input
          type="checkbox"
          checked={force}
          onChange={(event) => setForce(event.target.checked)}
          className="size-4 accent-accent"
        />
        Also if schedules name it: they tell it nothing more
      </label>
    </ConfirmDialog>
  );
}
