package ddblocal

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"time"
)

const (
	image = "amazon/dynamodb-local:" + Version

	// The image's port, and a folder that its user may write to.
	containerPort = 8000
	containerData = "/home/dynamodblocal/data"
)

// byDocker returns the way by Docker, after pulling the image if it is not there.
func byDocker(ctx context.Context, o Options, sh string) (*launcher, error) {
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
	if exec.CommandContext(ctx, docker, "image", "inspect", image).Run() != nil {
		start := time.Now()
		say(o.Progress, "Fetching %s by Docker, once …", image)
		out, err := output(exec.CommandContext(ctx, docker, "pull", "--quiet", image), func() {
			say(o.Progress, "… still fetching, %s so far", time.Since(start).Round(time.Second))
		})
		if err != nil {
			return nil, fmt.Errorf("`%s pull %s` failed: %w%s", docker, image, err, lastLines(out))
		}
	}
	return &launcher{name: "Docker", sh: sh, container: true, argv: func(r run) []string {
		return dockerArgs(docker, o.DataDir, r)
	}}, nil
}

func dockerArgs(docker, dataDir string, r run) []string {
	args := []string{docker, "run", "--rm", "--name", r.name, "--publish", fmt.Sprintf("127.0.0.1:%d:%d", r.port, containerPort)}
	inside := ""
	if dataDir != "" {
		inside = containerData
		// As this user, so that the files are this user's and can be removed.
		args = append(args, "--mount", "type=bind,source="+dataDir+",target="+containerData,
			"--user", fmt.Sprintf("%d:%d", os.Getuid(), os.Getgid()))
	}
	// The image's entry point is java.
	args = append(args, image, "-jar", "DynamoDBLocal.jar")
	return append(args, serverArgs(inside, containerPort, r.origin)...)
}
