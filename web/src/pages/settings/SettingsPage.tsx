/** Settings: who am I, how the page looks, tokens and the audit log for those who may see them. */

import { useMay } from "@/api/queries/me";
import { PageHeader } from "@/components/PageHeader";
import { Tabs } from "@/components/Tabs";
import { AUDIT_FILTERS, AuditTab } from "@/pages/settings/AuditTab";
import { PersonalTab } from "@/pages/settings/PersonalTab";
import { TokensTab } from "@/pages/settings/TokensTab";
import { useUrlState } from "@/state/urlState";

/** The filters of one tab do not go to another. */
const NO_FILTERS = Object.fromEntries(AUDIT_FILTERS.map((name) => [name, undefined]));

export function SettingsPage() {
  const admin = useMay("admin").allowed;
  const [values, change] = useUrlState();
  const tabs = [
    { id: "you", label: "You", content: <PersonalTab /> },
    ...(admin
      ? [
          { id: "tokens", label: "Tokens", content: <TokensTab /> },
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
        onChange={(tab) => change({ ...NO_FILTERS, tab: tab === "you" ? undefined : tab })}
      />
    </>
  );
}
