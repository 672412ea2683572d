package stack

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"

	"github.com/lambdaidem/toolkit/localstack/elasticmq"
	"github.com/lambdaidem/toolkit/localstack/template"
)

// read reads the template, prints its warnings, and creates the folder for the binaries.
func (s *Stack) read(o Options) error {
	path, err := filepath.Abs(o.Template)
	if err != nil {
		return fmt.Errorf("find the template %s: %w", o.Template, err)
	}
	s.root = filepath.Dir(path)
	s.label = rand.Text()[:12]
	if err := s.readAgain(o); err != nil {
		return err
	}
	for _, warning := range s.template.Warnings {
		_, _ = fmt.Fprintln(o.Progress, "warning: "+warning)
	}
	if s.folder, err = os.MkdirTemp("", "lambdaidem-stack-"); err != nil {
		return fmt.Errorf("a folder for the functions' binaries: %w", err)
	}
	return nil
}

// readAgain reads the template, with the current result of rename for tables and queues.
func (s *Stack) readAgain(o Options) error {
	var err error
	s.template, err = template.Read(o.Template, template.Options{Parameters: o.Parameters, References: o.References, Rename: s.rename})
	if err != nil {
		return err //nolint:wrapcheck // it names the place
	}
	if o.Change != nil {
		o.Change(s.template)
	}
	return nil
}

// rename returns the name of a resource. It generates a name for a table or a queue in a server
// that was running before, because other programs may use the same name there.
func (s *Stack) rename(resourceType, name string) string {
	switch {
	case resourceType == "AWS::DynamoDB::Table" && s.foreignDatabase:
		return "local-" + name + "-" + s.label
	case resourceType == "AWS::SQS::Queue" && os.Getenv(elasticmq.EndpointVariable) != "":
		return "local-" + s.label + "-" + name // name comes last, because the name of a FIFO queue must end in .fifo
	}
	return name
}
