/** Settings: who am I, how the page looks, who is told of what, tokens, logins and the audit log for those who may see them. */

import { useMay } from "@/api/queries/me";
import { PageHeader } from "@/components/PageHeader";
import { Tabs } from "@/components/Tabs";
import { ChannelsTab } from "@/pages/settings/ChannelsTab";
import { AuditTab, NO_AUDIT_FILTERS } from "@/pages/settings/AuditTab";
import { LoginsTab } from "@/pages/settings/LoginsTab";
import { PersonalTab } from "@/pages/settings/PersonalTab";
import { TokensTab } from "@/pages/settings/TokensTab";
import { useUrlState } from "@/state/urlState";

export function SettingsPage() {
  const admin = useMay("admin").allowed;
  const [values, change] = useUrlState();
  const tabs = [
    { id: "you", label: "You", content: <PersonalTab /> },
    { id: "channels", label: "Channels", content: <ChannelsTab /> },
    ...(admin
      ? [
          { id: "tokens", label: "Tokens", content: <TokensTab /> },
          { id: "logins", label: "Logins", content: <LoginsTab /> },
          { id: "audit", label: "Audit log", content: <AuditTab /> },
        ]
      : []),
  ];
  const chosen = tabs.find((tab) => tab.id === values["tab"])?.id ?? "you";
  return (
    <>
      <PageHeader title="Settings" />
      <Tabs
        label="Settings"
        tabs={tabs}
        value={chosen}
        // The filters of one tab do not go to another.
        onChange={(tab) => change({ ...NO_AUDIT_FILTERS, tab: tab === "you" ? undefined : tab })}
      />
    </>
  );
}
