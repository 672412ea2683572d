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

// stopWithin bounds Stop. The command gets SIGKILL, so a pause this long means that the machine is stuck.
const stopWithin = 10 * time.Second

// ErrPortTaken says that the server died because something else listens on its port.
var ErrPortTaken = errors.New("the port is in use")

// launcher is a way to run a program.
type launcher struct {
	program Program
	name    string // in error messages
	sh      string // the POSIX shell

	// argv is the command line of a run. It stays in the foreground for as long as the server lives.
	argv func(Run) []string

	// container is true if argv runs `docker run` with the run's name: killing that command leaves its container.
	container bool
}

// Run is what differs between two runs of a program.
type Run struct {
	Port int    // the TCP port to listen on
	Name string // unique in the world, of letters, digits and hyphens
	Dir  string // a folder for output and temporary files; the supervisor removes it
}

func newRun(p Program, port int) (Run, error) {
	name := p.Slug + "-" + strings.ToLower(rand.Text())
	dir, err := os.MkdirTemp("", name+"-*")
	if err != nil {
		return Run{}, fmt.Errorf("no temporary folder: %w", err)
	}
	return Run{Port: port, Name: name, Dir: dir}, nil
}

// supervisor is a shell script that runs a command until it ends or until standard input does, whichever comes first.
// Nobody ever writes to standard input: it ends when the process that holds its other end closes it or dies, of
// whatever. (Linux has PR_SET_PDEATHSIG, but that follows the thread which forked, and Go retires threads.)
//
// Standard output tells the other way: it ends when the supervisor does, and brings the last of what the command
// printed. The command writes to a file, so that it never blocks for want of a reader.
//
// Signals are ignored, by the command too, which inherits that: Ctrl-C on a terminal reaches the whole process group,
// and the server should outlive it for as long as its parent is still shutting down.
//
// The watcher reads by the shell's own `read`, so it is one process, and killing it leaves nothing behind.
//
// Arguments: the run's folder, the container's name or nothing, the command's words.
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

// process is a supervisor and its command. It has no goroutine.
type process struct {
	cmd    *exec.Cmd
	parent *os.File // the writing end of the supervisor's standard input
	life   *os.File // the reading end of its standard output
	output strings.Builder
}

// supervise starts a run.
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
	// The child has its own copies; ours would keep the pipes open after it has ended.
	err = errors.Join(err, stdin.Close(), stdout.Close())
	if err != nil {
		return nil, errors.Join(err, parent.Close(), life.Close())
	}
	return &process{cmd: cmd, parent: parent, life: life}, nil
}

// waitEnd waits for the supervisor's end, no longer than d, and reports whether it came.
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

// died returns nil if the command still runs after d, else an error with what it printed.
func (p *process) died(d time.Duration) error {
	ended, err := p.waitEnd(d)
	if !ended {
		return err
	}
	output := strings.TrimSpace(p.output.String())
	lower := strings.ToLower(output)
	// "Address already in use" by Java and by Docker's proxy, "port is already allocated" by Docker.
	if strings.Contains(lower, "already in use") || strings.Contains(lower, "already allocated") {
		return fmt.Errorf("%w: %s", ErrPortTaken, output)
	}
	if output == "" {
		output = "(nothing)"
	}
	return fmt.Errorf("it died; it printed: %s", output)
}

// stop kills the command and waits until all is cleaned up.
func (p *process) stop() error {
	err := p.parent.Close()
	ended, endErr := p.waitEnd(stopWithin)
	if !ended {
		err = errors.Join(err, endErr, fmt.Errorf("its process %d did not end within %s", p.cmd.Process.Pid, stopWithin), p.cmd.Process.Kill())
	}
	// The exit status is that of `rm`, and says nothing about the server.
	var exit *exec.ExitError
	if waitErr := p.cmd.Wait(); waitErr != nil && !errors.As(waitErr, &exit) {
		err = errors.Join(err, waitErr)
	}
	return errors.Join(err, p.life.Close())
}
