package stack

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lambdaidem/toolkit/localstack/ddblocal"
	"github.com/lambdaidem/toolkit/localstack/template"
)

// write creates files in a new folder and returns it. The names are paths relative to the folder.
func write(t *testing.T, files map[string]string) (folder string) {
	t.Helper()
	folder = t.TempDir()
	for name, text := range files {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// function returns a template with one function that has these lines of YAML as properties.
func function(metadata string, properties ...string) string {
	return "Resources:\n  Orders:\n    Type: AWS::Serverless::Function\n    Metadata: {" + metadata + "}\n    Properties:\n      " +
		strings.Join(properties, "\n      ") + "\n"
}

// probe is the folder of a function in this repository.
const probe = "../emulator/testdata/probe"

func TestWhatCannotBeBuiltIsNamed(t *testing.T) {
	const runtime = "Runtime: provided.al2023"
	for name, test := range map[string]struct {
		files map[string]string
		says  []string
	}{
		"an unknown runtime": {
			map[string]string{"template.yaml": function("", "Runtime: python3.12", "CodeUri: .")},
			[]string{"building Orders", `its runtime is "python3.12"`, "provided.al2023"},
		},
		"no runtime": {
			map[string]string{"template.yaml": function("", "CodeUri: .")},
			[]string{"building Orders", `its runtime is ""`, "provided.al2023"},
		},
		"a runtime with a Makefile": { // the emulator would start it as a bootstrap, which a Python function is not
			map[string]string{"template.yaml": function("BuildMethod: makefile", "Runtime: python3.12"), "Makefile": "build-Orders:\n"},
			[]string{"building Orders", `its runtime is "python3.12"`},
		},
		"code in a bucket": {
			map[string]string{"template.yaml": function("", runtime, "CodeUri: s3://bucket/orders.zip")},
			[]string{"building Orders", "s3://bucket/orders.zip", "not on this machine", "a Go main package"},
		},
		"code in a bucket, by name and key": {
			map[string]string{"template.yaml": function("", runtime, "CodeUri: {Bucket: bucket, Key: orders.zip}")},
			[]string{"building Orders", "s3://bucket/orders.zip", "not on this machine"},
		},
		"a zip package": {
			map[string]string{"template.yaml": function("", runtime, "CodeUri: orders.zip"), "orders.zip": "PK"},
			[]string{"building Orders", "orders.zip is a package that was built before", "a Go main package"},
		},
		"a container image": {
			map[string]string{"template.yaml": function("DockerTag: v1", "PackageType: Image")},
			[]string{"building Orders", "PackageType: Image"},
		},
		"inline code": {
			map[string]string{"template.yaml": function("", runtime, "InlineCode: 'print(1)'")},
			[]string{"building Orders", "InlineCode"},
		},
		"an unknown build method": {
			map[string]string{"template.yaml": function("BuildMethod: rust-cargolambda", runtime)},
			[]string{"building Orders", `its BuildMethod is "rust-cargolambda"`, "go1.x", "makefile"},
		},
		"no such folder": {
			map[string]string{"template.yaml": function("", runtime, "CodeUri: oders")},
			[]string{"building Orders", `its CodeUri is "oders"`, "no such file"},
		},
		"an empty folder": {
			map[string]string{"template.yaml": function("", runtime, "CodeUri: orders"), "orders/README": ""},
			[]string{"building Orders", "neither Go code nor a bootstrap", "a Go main package"},
		},
		"a broken template": {
			map[string]string{"template.yaml": "Resources: ["},
			[]string{"template.yaml:"},
		},
		"a policy that AWS would refuse": {
			map[string]string{"template.yaml": function("", runtime, "Policies: [{Statement: [{Effect: Allow, Action: dynamodb:PutItem, Resource: Orders}]}]")},
			[]string{"template.yaml:7:31: AWS refuses this policy", `"Orders" is neither an ARN nor *`, "!GetAtt NAME.Arn"},
		},
		"a queue that the role may not read": {
			map[string]string{"template.yaml": function("", runtime, "Role: !GetAtt Role.Arn", "Events: {Mail: {Type: SQS, Properties: {Queue: !GetAtt Mails.Arn}}}") +
				"  Mails: {Type: AWS::SQS::Queue}\n  Role: {Type: AWS::IAM::Role}\n"},
			[]string{"AWS would refuse an event source mapping", "Orders/Mail needs sqs:ReceiveMessage on arn:aws:sqs:us-east-1:000000000000:Mails", "add it to the policies of Role"},
		},
		"something that the emulator does not know": {
			map[string]string{"template.yaml": function("", runtime, "FunctionUrlConfig: {AuthType: AWS_IAM}")},
			[]string{"template.yaml:7:26", "AWS_IAM is not emulated"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			folder, temporary := write(t, test.files), t.TempDir()
			t.Setenv("TMPDIR", temporary)
			var progress bytes.Buffer
			s, err := Start(t.Context(), Options{Template: filepath.Join(folder, "template.yaml"), Progress: &progress, FunctionLog: io.Discard})
			if err == nil {
				t.Fatal("it started", s.Stop())
			}
			for _, want := range test.says {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("Start says %q; want %q in it", err, want)
				}
			}
			if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
			if progress.Len() > 0 {
				t.Errorf("it began with something before it looked: %q", &progress)
			}
		})
	}
}

func TestNoSuchTemplateIsAnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "template.yaml")
	if _, err := Start(t.Context(), Options{Template: path}); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), path) {
		t.Errorf("Start = %v; want that there is no %s", err, path)
	}
}

func TestValuesReachTheTemplate(t *testing.T) {
	folder := write(t, map[string]string{"template.yaml": "Parameters:\n  Shop: {Type: String}\n" +
		function("", "Runtime: !Ref Shop", "FunctionName: '{{resolve:ssm:/shop/name}}'")})
	path := filepath.Join(folder, "template.yaml")
	for want, o := range map[string]Options{
		"Shop":           {References: map[string]string{"ssm:/shop/name": "orders"}},
		"ssm:/shop/name": {Parameters: map[string]string{"Shop": "dotnet8"}},
	} {
		o.Template = path
		_, err := Start(t.Context(), o)
		var missing *template.MissingValueError
		if !errors.As(err, &missing) || !slices.Equal(append(missing.Parameters, missing.References...), []string{want}) {
			t.Errorf("Start = %v; want that %s has no value", err, want)
		}
	}
	_, err := Start(t.Context(), Options{
		Template:   path,
		Parameters: map[string]string{"Shop": "dotnet8"}, References: map[string]string{"ssm:/shop/name": "orders"},
	})
	if err == nil || !strings.Contains(err.Error(), `"dotnet8"`) {
		t.Errorf("Start = %v; want an error about the parameter's value", err)
	}
}

// The error of a failed build includes the output of the build command.
func TestBuildersHaveTheirSay(t *testing.T) {
	t.Setenv(ddblocal.EndpointVariable, ddblocal.ForTest(t).Endpoint())
	for name, test := range map[string]struct {
		files map[string]string
		says  []string
	}{
		"go": {
			map[string]string{
				"template.yaml":  function("", "Runtime: provided.al2023", "CodeUri: orders"),
				"go.mod":         "module example.com/shop\n\ngo 1.26\n",
				"orders/main.go": "package main\n\nfunc main() { order() }\n",
			},
			[]string{"building Orders", "go run", "main.go:3:15: undefined: order"},
		},
		"go, though an older bootstrap is there": {
			map[string]string{
				"template.yaml":    function("", "Runtime: provided.al2023", "CodeUri: orders"),
				"go.mod":           "module example.com/shop\n\ngo 1.26\n",
				"orders/main.go":   "package main\n\nfunc main() { order() }\n",
				"orders/bootstrap": "#!/bin/sh\n",
			},
			[]string{"building Orders", "undefined: order"},
		},
		"make": {
			map[string]string{"template.yaml": function("BuildMethod: makefile", "Runtime: provided.al2023"), "Makefile": "build-Oders:\n"},
			[]string{"building Orders", "make", "build-Orders"},
		},
		"nobody": {
			map[string]string{"template.yaml": function("BuildMethod: makefile", "Runtime: provided.al2023"), "Makefile": "build-Orders:\n\t@true\n"},
			[]string{"Orders", "its bootstrap is missing"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			folder := write(t, test.files)
			s, err := Start(t.Context(), Options{Template: filepath.Join(folder, "template.yaml"), Progress: io.Discard, FunctionLog: io.Discard})
			if err == nil {
				t.Fatal("it started", s.Stop())
			}
			for _, want := range test.says {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("Start says %q; want %q in it", err, want)
				}
			}
		})
	}
}

// CodeUri is relative to the template's folder, whatever the working directory is. Functions are
// built for this machine, whatever GOOS and GOARCH the user has set.
func TestEveryWayToBuildMakesAFunctionThatAnswers(t *testing.T) {
	t.Setenv(ddblocal.EndpointVariable, ddblocal.ForTest(t).Endpoint())
	source, err := filepath.Abs(probe)
	if err != nil {
		t.Fatal(err)
	}
	properties := func(codeURI string) string {
		return "    Properties: {Runtime: provided.al2023, CodeUri: " + codeURI + "}\n"
	}
	folder := write(t, map[string]string{
		"Makefile": "GOOS = plan9\nGOARCH = mips\n\nbuild-Made:\n" +
			"\tGOOS=$(GOOS) GOARCH=$(GOARCH) go build -C " + source + " -tags lambda.norpc -o $(ARTIFACTS_DIR)/bootstrap .\n",
	})
	relative, err := filepath.Rel(folder, source)
	if err != nil {
		t.Fatal(err)
	}
	text := "Resources:\n" +
		"  Plain:\n    Type: AWS::Serverless::Function\n" + properties(relative) +
		"  Named:\n    Type: AWS::Serverless::Function\n    Metadata: {BuildMethod: go1.x}\n" + properties(source) +
		"  Made:\n    Type: AWS::Serverless::Function\n    Metadata: {BuildMethod: makefile}\n    Properties: {Runtime: provided.al2023}\n" +
		"  Ready:\n    Type: AWS::Serverless::Function\n" + properties("ready")
	if err := os.WriteFile(filepath.Join(folder, "template.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	ready := filepath.Join(folder, "ready", "bootstrap")
	if out, err := exec.Command("go", "build", "-tags", "lambda.norpc", "-o", ready, probe).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	before, err := os.Stat(ready)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOOS", "plan9")
	t.Setenv("GOARCH", "mips")
	t.Setenv("MAKEFLAGS", "--question")
	var log bytes.Buffer
	s, err := Start(t.Context(), Options{Template: filepath.Join(folder, "template.yaml"), Progress: &log, FunctionLog: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
		if after, err := os.Stat(ready); err != nil || !os.SameFile(before, after) || !after.ModTime().Equal(before.ModTime()) {
			t.Errorf("the user's own bootstrap is not what it was: %v", err)
		}
	}()
	for _, f := range s.Template().Functions {
		result, err := s.Emulator().Invoke(t.Context(), f.LogicalID, []byte(`{"do":"respond","raw":"\"here\""}`))
		if err != nil || string(result.Payload) != `"here"` {
			t.Errorf("%s: %s, %v", f.LogicalID, result.Payload, err)
		}
		if built := strings.Contains(log.String(), fmt.Sprintf("building %s …", f.LogicalID)); built != (f.LogicalID != "Ready") {
			t.Errorf("%s was built: %t\n%s", f.LogicalID, built, &log)
		}
	}
}
