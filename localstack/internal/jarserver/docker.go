package jarserver

import (
	"context"
	"fmt"
	"os/exec"
	"time"
)

// byDocker returns a launcher that runs the program with Docker. It pulls the image first if Docker doesn't have it.
func byDocker(ctx context.Context, p Program, o Options, sh string) (*launcher, error) {
	docker, err := exec.LookPath("docker")
	if err != nil {
		return nil, fmt.Errorf("docker is not there: %w", err)
	}
	infoCtx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	info := exec.CommandContext(infoCtx, docker, "info", "--format", "{{.ServerVersion}}")
	info.WaitDelay = time.Second
	out, err := info.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("its engine doesn't answer `%s info`: %w%s", docker, err, lastLines(out))
	}
	if exec.CommandContext(ctx, docker, "image", "inspect", p.Image).Run() != nil {
		start := time.Now()
		say(o.Progress, "Fetching %s by Docker, once …", p.Image)
		out, err := output(exec.CommandContext(ctx, docker, "pull", "--quiet", p.Image), func() {
			say(o.Progress, "… still fetching, %s so far", time.Since(start).Round(time.Second))
		})
		if err != nil {
			return nil, fmt.Errorf("`%s pull %s` failed: %w%s", docker, p.Image, err, lastLines(out))
		}
	}
	return &launcher{program: p, name: "Docker", sh: sh, container: true, argv: func(r Run) []string {
		return append([]string{docker, "run", "--rm", "--name", r.Name}, p.Docker(r)...)
	}}, nil
}
