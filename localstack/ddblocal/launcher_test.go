package ddblocal

import (
	"bytes"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lambdaidem/toolkit/localstack/internal/jarserver"
)

// tools sets PATH to a new folder with these shell scripts and the few tools that they and the
// supervisor need. It also sets an empty cache folder. It returns the new folder.
func tools(t *testing.T, scripts map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, body := range scripts {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+body), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	cache := t.TempDir()
	t.Setenv("PATH", dir+":/bin:/usr/bin")
	t.Setenv("JAVA_HOME", "")
	t.Setenv(EndpointVariable, "")
	t.Setenv("XDG_CACHE_HOME", cache) // Linux
	t.Setenv("HOME", cache)           // macOS
	return dir
}

func TestStart_NoWayNamesAllThreeAndWhatTheyLack(t *testing.T) {
	const (
		java17   = `echo 'openjdk version "17.0.15" 2025-04-15' >&2`
		noDaemon = `echo 'Cannot connect to the Docker daemon' >&2; exit 1`
	)
	for name, test := range map[string]struct {
		scripts map[string]string
		want    []string
	}{
		"old Java, no engine": {
			map[string]string{"java": `echo 'java version "1.8.0_392"' >&2`, "docker": noDaemon},
			[]string{"is Java 8", "Cannot connect to the Docker daemon"},
		},
		"no Java behind its name, no engine": {
			map[string]string{"java": `echo 'Unable to locate a Java Runtime.' >&2; exit 1`, "docker": noDaemon},
			[]string{"Unable to locate a Java Runtime", "Cannot connect to the Docker daemon"},
		},
		"Maven fails, pull fails": {
			map[string]string{
				"java":   java17,
				"mvn":    `echo 'Could not transfer artifact'; exit 1`,
				"docker": `[ "$1" = info ] || { echo 'no route to registry'; exit 1; }`,
			},
			[]string{"Could not transfer artifact", "no route to registry"},
		},
		"a Java that says nothing": {
			map[string]string{"java": `:`, "docker": noDaemon},
			[]string{"can't be read"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			tools(t, test.scripts)
			_, err := Start(t.Context(), func(o *Options) { o.Progress = &bytes.Buffer{} })
			if err == nil {
				t.Fatal("started")
			}
			for _, want := range append(test.want, "1. "+EndpointVariable, "2. Java 17 or later, and Maven", "3. Docker") {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error lacks %q:\n%v", want, err)
				}
			}
		})
	}
	t.Run("an empty machine", func(t *testing.T) {
		tools(t, nil)
		t.Setenv("PATH", t.TempDir())
		_, err := Start(t.Context())
		if err == nil || !strings.Contains(err.Error(), "no POSIX shell") {
			t.Errorf("error %v", err)
		}
	})
}

func TestPom_NamesTheVersion(t *testing.T) {
	if want := "<artifactId>DynamoDBLocal</artifactId>\n      <version>" + Version + "</version>"; !strings.Contains(string(pom), want) {
		t.Errorf("pom.xml lacks %q", want)
	}
}

func TestDockerArgs_PublishOnLoopbackAlone(t *testing.T) {
	r := jarserver.Run{Port: 4711, Name: "n", Dir: "/tmp/n"}
	got := dockerArgs("", r)
	want := strings.Fields("--publish 127.0.0.1:4711:8000 amazon/dynamodb-local:3.1.0 " +
		"-jar DynamoDBLocal.jar -inMemory -sharedDb -disableTelemetry -cors http://n.invalid -port 8000")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	got = dockerArgs("/my data", r)
	line := strings.Join(got, "|")
	for _, want := range []string{
		"|--mount|type=bind,source=/my data,target=/home/dynamodblocal/data|",
		"|--user|" + strconv.Itoa(os.Getuid()) + ":" + strconv.Itoa(os.Getgid()) + "|",
		"|-dbPath|/home/dynamodblocal/data|",
	} {
		if !strings.Contains(line, want) {
			t.Errorf("arguments %q lack %q", line, want)
		}
	}
	if strings.Contains(line, "-inMemory") {
		t.Errorf("arguments %q keep the data in memory", line)
	}
}

// TestStart_ByDocker tests Start with a fake docker command. The command records its arguments,
// and its `run` answers like DynamoDB Local on the port that it is told to publish.
func TestStart_ByDocker(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin := tools(t, map[string]string{
		"java": `exit 1`,
		"docker": `echo "$@" >>"$(dirname "$0")/calls"
case $1 in
info) echo 28.2.2;;
image) exit 1;;
run) ` + roleVariable + `=docker exec '` + self + `' "$@";;
esac`,
	})
	var progress bytes.Buffer
	s, err := Start(t.Context(), func(o *Options) { o.Progress = &progress })
	if err != nil {
		t.Fatal(err)
	}
	if got := tables(t, s); len(got) != 1 || got[0] != "in-docker" {
		t.Errorf("tables %v", got)
	}
	container := runOf(s).Name
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
	calls, err := os.ReadFile(filepath.Join(bin, "calls"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(calls)), "\n")
	if len(lines) != 5 || lines[0] != "info --format {{.ServerVersion}}" || lines[2] != "pull --quiet "+image || lines[4] != "rm -f "+container {
		t.Errorf("calls:\n%s", calls)
	}
	if !strings.Contains(progress.String(), "Fetching "+image+" by Docker") {
		t.Errorf("progress %q", progress.String())
	}
}

// playDocker acts as `docker run` with the arguments of dockerArgs.
func playDocker() {
	var address, origin string
	for i, arg := range os.Args {
		switch arg {
		case "--publish":
			address = strings.TrimSuffix(os.Args[i+1], ":8000")
		case "-cors":
			origin = os.Args[i+1]
		}
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		panic(err)
	}
	panic(http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Origin") == origin {
			w.Header().Set("Access-Control-Allow-Origin", origin)
		}
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		_ = json.NewEncoder(w).Encode(map[string][]string{"TableNames": {"in-docker"}})
	})))
}
