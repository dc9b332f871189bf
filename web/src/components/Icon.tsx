/** The icons: 16 × 16, drawn with the colour of the text, silent to screen readers. */

const PATHS = {
  activity: "M1.5 8h3l2-5 3.5 10 2-5h2.5",
  alert: "M8 2.2 14.3 13H1.7zM8 6.5v3M8 11.4v.1",
  arrowLeft: "M13 8H3m4-4-4 4 4 4",
  arrowRight: "M3 8h10M9 4l4 4-4 4",
  ban: "M3.8 3.8l8.4 8.4M14 8A6 6 0 1 1 2 8a6 6 0 0 1 12 0",
  bolt: "M8.8 1.8 3.2 9h4.3l-.6 5.2L12.8 7H8.4z",
  calendar: "M2.5 4h11v9.5h-11zM2.5 7h11M5.5 2.2v2.6M10.5 2.2v2.6",
  check: "M3.2 8.4l3.2 3.2 6.4-7",
  checkAlert: "M1.8 8.6l2.9 2.9 5.5-6.6M13.4 4.4v4.2M13.4 11.3v.1",
  chevronDown: "M4 6l4 4 4-4",
  chevronRight: "M6 4l4 4-4 4",
  circle: "M14 8A6 6 0 1 1 2 8a6 6 0 0 1 12 0",
  clock: "M14 8A6 6 0 1 1 2 8a6 6 0 0 1 12 0M8 4.6V8l2.3 1.6",
  copy: "M5.8 5.8h7.7v7.7H5.8zM3.6 10.2H2.5V2.5h7.7v1.1",
  cross: "M4 4l8 8M12 4l-8 8",
  dots: "M3.2 8v.01M8 8v.01M12.8 8v.01",
  download: "M8 2.5v7.8M4.8 7.2 8 10.4l3.2-3.2M2.8 13.3h10.4",
  edit: "M10.6 3.1l2.3 2.3-7.4 7.4-3 .7.7-3z",
  gear: "M8 10.2A2.2 2.2 0 1 0 8 5.8a2.2 2.2 0 0 0 0 4.4M8 1.8v1.6M8 12.6v1.6M1.8 8h1.6M12.6 8h1.6M3.6 3.6l1.1 1.1M11.3 11.3l1.1 1.1M12.4 3.6l-1.1 1.1M4.7 11.3l-1.1 1.1",
  history: "M2.6 8a5.6 5.6 0 1 1 1.7 4M2.4 13v-3.2h3.2M8 5v3.2l2 1.3",
  hourglass:
    "M4 2h8M4 14h8M4.8 2.2c0 3.2 3.2 3.6 3.2 5.8s-3.2 2.6-3.2 5.8M11.2 2.2c0 3.2-3.2 3.6-3.2 5.8s3.2 2.6 3.2 5.8",
  inbox: "M2.2 9 4.2 3h7.6l2 6v4H2.2zM2.2 9h3.4l.8 1.7h3.2l.8-1.7h3.4",
  info: "M14 8A6 6 0 1 1 2 8a6 6 0 0 1 12 0M8 7.4v3.4M8 5.2v.1",
  key: "M6.6 9.4 13 3M10.8 5.2l1.8 1.8M8.9 7.1l1.2 1.2M7.6 10.9a2.6 2.6 0 1 1-5.2 0 2.6 2.6 0 0 1 5.2 0",
  keyboard: "M1.8 4h12.4v8H1.8zM4.4 6.6v.01M7 6.6v.01M9.6 6.6v.01M11.8 6.6v.01M5 9.5h6",
  lanes: "M2.5 3.8h11M2.5 8h7.5M2.5 12.2h4.5",
  list: "M5.4 4h8.2M5.4 8h8.2M5.4 12h8.2M2.5 4v.01M2.5 8v.01M2.5 12v.01",
  logout: "M6.4 2.8H3v10.4h3.4M10.2 5.2 13 8l-2.8 2.8M13 8H6.2",
  menu: "M2.5 4.2h11M2.5 8h11M2.5 11.8h11",
  minus: "M3.5 8h9",
  monitor: "M2 3h12v8H2zM5.5 13.5h5M8 11v2.5",
  moon: "M13.2 9.6A5.8 5.8 0 0 1 6.4 2.8a5.8 5.8 0 1 0 6.8 6.8",
  nodes: "M2.5 2.8h11v4h-11zM2.5 9.2h11v4h-11zM5 4.8v.01M5 11.2v.01",
  overview: "M2.5 2.5h4.7v6H2.5zM8.8 2.5h4.7v3.6H8.8zM2.5 10.1h4.7v3.4H2.5zM8.8 7.7h4.7v5.8H8.8z",
  pause: "M5.5 3.5v9M10.5 3.5v9",
  play: "M4.8 3l7.7 5-7.7 5z",
  plus: "M8 3v10M3 8h10",
  refresh: "M13.2 8a5.2 5.2 0 1 1-1.6-3.7M13.4 2.6v3h-3",
  search: "M11.2 6.9a4.3 4.3 0 1 1-8.6 0 4.3 4.3 0 0 1 8.6 0M10 10l3.6 3.6",
  send: "M14 2 7.2 8.8M14 2 9.8 14l-2.6-5.2L2 6.2z",
  skip: "M3.5 3.5 9 8l-5.5 4.5zM12 3.5v9",
  stop: "M4 4h8v8H4z",
  sun: "M8 10.8a2.8 2.8 0 1 0 0-5.6 2.8 2.8 0 0 0 0 5.6M8 1.6v1.2M8 13.2v1.2M1.6 8h1.2M13.2 8h1.2M3.5 3.5l.8.8M11.7 11.7l.8.8M12.5 3.5l-.8.8M4.3 11.7l-.8.8",
  swap: "M3 5.4h9.4M9.8 2.8l2.6 2.6-2.6 2.6M13 10.6H3.6M6.2 8l-2.6 2.6 2.6 2.6",
  terminal: "M2.2 3h11.6v10H2.2zM4.8 6l2 2-2 2M8.4 10.2h2.8",
  timeline: "M2.2 3.6h5M5 8h6.2M8.8 12.4h5M2.2 2v12",
  trash: "M3 4.4h10M6.2 4.2V2.6h3.6v1.6M4.4 4.6l.6 8.9h6l.6-8.9",
  unplug:
    "M2.5 13.5l2.6-2.6M4.4 7.2l4.4 4.4-1.2 1.2a3.1 3.1 0 0 1-4.4-4.4zM13.5 2.5l-2.6 2.6M11.6 8.8 7.2 4.4l1.2-1.2a3.1 3.1 0 0 1 4.4 4.4z",
  user: "M8 7.6a2.7 2.7 0 1 0 0-5.4 2.7 2.7 0 0 0 0 5.4M2.8 13.8c.6-2.8 2.6-4.2 5.2-4.2s4.6 1.4 5.2 4.2",
  warning: "M14 8A6 6 0 1 1 2 8a6 6 0 0 1 12 0M8 4.8v3.8M8 10.9v.1",
} as const;

export type IconName = keyof typeof PATHS;

interface IconProps {
  name: IconName;
  size?: number;
  className?: string;
}

export function Icon({ name, size = 16, className }: IconProps) {
  return (
    <svg
      aria-hidden="true"
      width={size}
      height={size}
      viewBox="0 0 16 16"
      fill="none"
      stroke="currentColor"
      strokeWidth={name === "dots" ? 2.2 : 1.5}
      strokeLinecap="round"
      strokeLinejoin="round"
      className={`shrink-0 ${className ?? ""}`}
    >
      <path d={PATHS[name]} />
    </svg>
  );
}
