package jarserver

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// stopWithin is the maximum time for Stop. SIGKILL takes effect at once, unless the machine itself hangs.
const stopWithin = 10 * time.Second

// ErrPortTaken means that the server ended because another process listens on its port.
var ErrPortTaken = errors.New("the port is in use")

// launcher runs a program with Java or with Docker.
type launcher struct {
	program Program
	name    string // Java or Docker, for error messages
	sh      string // path of the POSIX shell that runs the supervisor

	// argv returns the command line of a run. The command runs in the foreground until the server ends.
	argv func(Run) []string

	// container is true if argv is a `docker run` that names the container after the run. If that command is killed,
	// the container continues to run and must be removed.
	container bool
}

// Run identifies one run of a program.
type Run struct {
	Port int    // the TCP port to listen on
	Name string // a globally unique name of letters, digits and hyphens
	Dir  string // folder for output and temporary files; the supervisor removes it when the run ends
}

func newRun(p Program, port int) (Run, error) {
	name := p.Slug + "-" + strings.ToLower(rand.Text())
	dir, err := os.MkdirTemp("", name+"-*")
	if err != nil {
		return Run{}, fmt.Errorf("no temporary folder: %w", err)
	}
	return Run{Port: port, Name: name, Dir: dir}, nil
}

// supervisor is a shell script that runs a command until the command ends or standard input is closed. Nobody writes to
// standard input. It is closed when the process that has its other end closes it or ends for any reason. (Linux has
// PR_SET_PDEATHSIG for this purpose, but it depends on the thread that forked, and Go may end that thread earlier.)
//
// Standard output is closed when the supervisor ends. Before that, the supervisor writes the last 8 KB of the command's
// output to it. The command itself writes to a file, so that it never waits for a reader.
//
// The supervisor ignores signals, and the command inherits that. Ctrl-C on a terminal sends a signal to the whole process
// group, but the server must continue to run while its parent shuts down.
//
// The watcher uses the shell's built-in read. It is therefore a single process, and killing it leaves nothing behind.
//
// Arguments: the folder of the run, the name of the container (empty if there is none), the words of the command.
const supervisor = `
dir=$1 container=$2
shift 2
trap '' HUP INT TERM PIPE
exec 3<&0
"$@" </dev/null >"$dir/output" 2>&1 3<&- &
command=$!
{ while read -r _ <&3; do :; done; kill -9 "$command"; } >/dev/null 2>&1 &
watcher=$!
exec 3<&-
wait "$command"
kill -9 "$watcher"
[ -z "$container" ] || "$1" rm -f "$container" >/dev/null 2>&1
tail -c 8192 "$dir/output"
rm -rf "$dir"
`

// process is a running supervisor with its command. It needs no goroutine.
type process struct {
	cmd    *exec.Cmd
	parent *os.File // the writing end of the supervisor's standard input
	life   *os.File // the reading end of its standard output
	output strings.Builder
}

// supervise starts the supervisor and the command of a run.
func supervise(l *launcher, r Run) (_ *process, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("starting %s: %w", l.name, err), os.RemoveAll(r.Dir))
		}
	}()
	stdin, parent, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	life, stdout, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, stdin.Close(), parent.Close())
	}
	container := ""
	if l.container {
		container = r.Name
	}
	args := append([]string{"-c", supervisor, "supervisor", r.Dir, container}, l.argv(r)...)
	cmd := exec.Command(l.sh, args...)
	cmd.Stdin, cmd.Stdout = stdin, stdout
	err = cmd.Start()
	// The child has its own copies of these two files. Copies in this process would keep the pipes open after the child
	// has ended.
	err = errors.Join(err, stdin.Close(), stdout.Close())
	if err != nil {
		return nil, errors.Join(err, parent.Close(), life.Close())
	}
	return &process{cmd: cmd, parent: parent, life: life}, nil
}

// waitEnd waits up to d for the supervisor to end, and reports whether it has ended.
func (p *process) waitEnd(d time.Duration) (bool, error) {
	if err := p.life.SetReadDeadline(time.Now().Add(d)); err != nil {
		return false, err
	}
	_, err := io.Copy(&p.output, p.life)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return false, nil
	}
	return err == nil, err
}

// died waits up to d. It returns nil if the command is still running then, and an error with its output otherwise.
func (p *process) died(d time.Duration) error {
	ended, err := p.waitEnd(d)
	if !ended {
		return err
	}
	output := strings.TrimSpace(p.output.String())
	lower := strings.ToLower(output)
	// Java and Docker's proxy print "Address already in use", Docker itself prints "port is already allocated".
	if strings.Contains(lower, "already in use") || strings.Contains(lower, "already allocated") {
		return fmt.Errorf("%w: %s", ErrPortTaken, output)
	}
	if output == "" {
		output = "(nothing)"
	}
	return fmt.Errorf("it died; it printed: %s", output)
}

// stop kills the command, and waits until the supervisor has cleaned up and ended.
func (p *process) stop() error {
	err := p.parent.Close()
	ended, endErr := p.waitEnd(stopWithin)
	if !ended {
		err = errors.Join(err, endErr, fmt.Errorf("its process %d did not end within %s", p.cmd.Process.Pid, stopWithin), p.cmd.Process.Kill())
	}
	// Ignore the exit status: it is that of the script's last command, rm, and says nothing about the server.
	var exit *exec.ExitError
	if waitErr := p.cmd.Wait(); waitErr != nil && !errors.As(waitErr, &exit) {
		err = errors.Join(err, waitErr)
	}
	return errors.Join(err, p.life.Close())
}
