package process

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
)

// envForked tells a process that it is the child that --fork asks for.
const envForked = "UTR_FORKED"

// fork starts the same process anew, apart from this one, waits until it serves
// and ends.
func fork(ctx context.Context, o *Options, env Environment) int {
	say(env.Stdout, "about to fork child process, waiting until server is ready for connections.")
	command := exec.Command(env.Self[0], slices.Concat(env.Self[1:], o.Arguments)...)
	command.SysProcAttr = apart()
	command.Env = append(os.Environ(), envForked+"=1")
	out, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		say(env.Stderr, "ERROR: could not fork: %s", err)
		return exitFailure
	}
	stop := context.AfterFunc(ctx, func() { _ = command.Process.Kill() })
	defer stop()
	say(env.Stdout, "forked process: %d", command.Process.Pid)
	if _, err := bufio.NewReader(out).ReadString('\n'); err == nil {
		say(env.Stdout, "child process started successfully, parent exiting")
		return exitClean
	}
	code := exitFailure
	var exited *exec.ExitError
	if errors.As(command.Wait(), &exited) && exited.ExitCode() > 0 {
		code = exited.ExitCode()
	}
	say(env.Stderr, "ERROR: child process failed, exited with %d\nTo see additional information in this output, start without the \"--fork\" option.", code)
	return code
}

// ready tells the process that forked this one.
func (e Environment) ready() {
	if e.Getenv(envForked) == "" {
		return
	}
	_, _ = io.WriteString(e.Stdout, "ready\n") // it may have ended
	if c, ok := e.Stdout.(io.Closer); ok {
		_ = c.Close()
	}
}
