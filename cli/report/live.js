"use strict";
// The page of `report --serve`: asks the server that it came from for what is new, and says when that is gone.
const EVERY = 2000, PATIENCE = 20000;  // milliseconds
let tag = firstReport.tag, asking = false, timer = 0;

function say(state, text) {
  const told = byId("live");
  told.className = state;
  if (told.textContent !== text) told.textContent = text;
}
const clock = () => new Date().toLocaleTimeString([], {hour12: false});
let changedAt = clock(), goneAt = "";

async function ask() {
  const reply = await fetch("report.json", {headers: {"If-None-Match": tag}, cache: "no-store", signal: AbortSignal.timeout(PATIENCE)});
  if (reply.status === 503) return say("gone", `The run cannot be read: ${await reply.text()}`);
  if (reply.status === 200) {
    const report = await reply.json();
    if (report.runs.map(run => run.name).join("\n") !== runs.map(run => run.name).join("\n")) return location.reload();
    show(report);
    tag = report.tag;
    changedAt = clock();
  } else if (reply.status !== 304) {
    throw new Error(`status ${reply.status}`);
  }
  goneAt = "";
  say("lives", `live, last change ${changedAt}`);
}
async function look() {
  if (asking || document.hidden) return;
  clearTimeout(timer);
  asking = true;
  try {
    await ask();
  } catch (problem) {
    if (problem instanceof TypeError || problem.name === "TimeoutError" || problem.message.startsWith("status ")) {
      goneAt ||= clock();
      say("gone", `The server is gone since ${goneAt}: this is what it last knew. The page goes on when it is back.`);
    } else {
      say("gone", `This page cannot show what is new: ${problem.message}`);
    }
  }
  asking = false;
  timer = setTimeout(look, EVERY);
}
document.addEventListener("visibilitychange", look);
say("lives", `live, last change ${changedAt}`);
timer = setTimeout(look, EVERY);
