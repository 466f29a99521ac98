"""Where a process died: the native stack of a crash, printed on standard error before the process is gone.

It is off unless the process has ``EP_HARNESS_NATIVE_STACK=1``. Then a second small Python, the *watcher*,
traces the agent with ptrace, as a debugger does. A signal that is about to kill the agent stops its thread.
The watcher reads registers, stack and symbols from outside, prints, and lets the signal through.

Why a watcher and nothing inside of the process: a handler needs a stack, a heap or locks that the crash may
have taken with it, it changes what the provider's own handlers see, and a second fault in it changes the
signal. A core dump is as large as the provider's memory, and the system chooses where it goes. The watcher
leaves the agent's code, handlers and memory alone. If it dies, or is killed by its alarm, the system detaches
it and delivers the signal: the process ends as it would have without it.

No module of this folder needs more than the standard library. All of them raise OSError if the process or the
thread is gone, or its memory cannot be read.
"""
