"""Numbers of events in the last hour, day and week, as time moves on."""

from tclgraph.compilation import kernel
from tclgraph.features.columns import WINDOWS
from tclgraph.features.state_arrays import Activity, Events

NUM_WINDOWS = len(WINDOWS)


@kernel
def change_window(event: int, window: int, change: int, events: Events, activity: Activity) -> None:
    """Add `change` to the window's numbers of both nodes of an event."""
    node, first_target, in_window = events.node, events.first_target, activity.in_window
    in_window[window, node[2 * event + 1] - first_target] += change
    if first_target == 0:  # in a one-mode graph the source is a candidate, too
        in_window[NUM_WINDOWS + window, node[2 * event]] += change


@kernel
def slide_windows(num_known: int, now: float, events: Events, activity: Activity) -> None:
    """Let all windows end at `now`, which may be earlier than where they ended before."""
    time, start = events.time, activity.window_start
    for window in range(NUM_WINDOWS):
        while start[window] < num_known and now - time[start[window]] >= WINDOWS[window]:
            change_window(start[window], window, -1, events, activity)
            start[window] += 1
        while start[window] > 0 and now - time[start[window] - 1] < WINDOWS[window]:
            start[window] -= 1
            change_window(start[window], window, 1, events, activity)
