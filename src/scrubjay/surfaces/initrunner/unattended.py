"""Unattended runs: a task until it is finished, or once for a trigger; each leaves an episode."""

from __future__ import annotations

from typing import Any, Final, Literal

from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.tools import Tool

from scrubjay.surfaces.initrunner.chat import Terminal, keep, report
from scrubjay.surfaces.initrunner.role_agent import RoleAgent
from scrubjay.surfaces.initrunner.roles import Interval
from scrubjay.surfaces.initrunner.sessions import new_id, trimmed, whole

TURNS: Final = 10
_GO_ON: Final = (
    "Continue with the task. Review what you have done and decide on the next step. If the task is "
    "done, or you cannot go on, call finish_task with a summary."
)
_IDLE_TURNS: Final = 2
"""Turns without any tool call after which a run is stopped."""
_HISTORY: Final = 40
_SUMMARY_CHARS: Final = 500
Status = Literal["completed", "blocked", "failed"]


class Finish:
    """What the agent says at the end of its task."""

    summary: str = ""
    status: Status = "completed"

    def tool(self) -> Tool[Any]:
        """The tool by which it says so."""

        def finish_task(summary: str, status: Status = "completed") -> str:
            """Say that the task is done, blocked or failed.

            Args:
                summary: What was done, or why it was not.
                status: The outcome.
            """
            self.summary, self.status = summary, status
            return f"Task finished ({status})."

        return Tool(finish_task)


def work_on(agent: RoleAgent, task: str, terminal: Terminal, *, most: int = TURNS) -> Status:
    """Let the agent work on a task until it calls finish_task; returns how it ended."""
    finish, session, idle = Finish(), new_id(), 0
    built, history = agent.build(finish.tool()), list[ModelMessage]()
    for turn in range(most):
        run = built.run(
            task if turn == 0 else _GO_ON, message_history=history, conversation_id=session
        )
        result = agent.answered(run)
        terminal.show(result.output)
        new = result.new_messages()
        keep(agent, session, new, terminal)
        history = trimmed(whole(result.all_messages()), _HISTORY)
        called = any(isinstance(one, ModelResponse) and one.tool_calls for one in new)
        idle = 0 if called else idle + 1
        if finish.summary:
            break
        if idle == _IDLE_TURNS:
            finish.status = "blocked"
            finish.summary = f"Stopped: no tool calls for {idle} turns."
            break
    else:
        finish.status = "blocked"
        terminal.say(f"blocked: Stopped after {most} turns without finish_task.")
    if finish.summary:
        terminal.say(f"{finish.status}: {finish.summary}")
        if agent.remembers:
            agent.memory.capture(finish.summary, "autonomous_run", session=session)
    report(agent.tidy(Interval.AFTER_SESSION, Interval.AFTER_AUTONOMOUS), terminal)
    return finish.status


def triggered(agent: RoleAgent, task: str, trigger: str, terminal: Terminal) -> None:
    """Run the agent once for a trigger; its output is kept as an episode."""
    session = new_id()
    result = agent.answered(agent.build().run(task, conversation_id=session))
    terminal.show(result.output)
    keep(agent, session, result.new_messages(), terminal)
    if agent.remembers:
        told = f"Daemon trigger ({trigger}): {result.output[:_SUMMARY_CHARS]}"
        agent.memory.capture(told, "daemon_run", {"trigger_type": trigger}, session=session)
    agent.tidy()
