package template

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// Template has those parts of a SAM template that a local run needs. It is plain data. A caller
// may change it before use, for example to shorten a timeout in a test.
type Template struct {
	Functions []*Function // in the template's order
	Tables    []Table     // in the template's order
	Queues    []Queue     // in the template's order
	Region    string
	AccountID string

	// Warnings name parts of the template that a local run ignores. Each begins with
	// path:line:column.
	Warnings []string
}

// Function returns the function with this logical ID or name, or nil.
func (t *Template) Function(id string) *Function {
	for _, f := range t.Functions {
		if f.LogicalID == id || f.Name == id {
			return f
		}
	}
	return nil
}

// Options are values that CloudFormation would know at deployment.
type Options struct {
	// Parameters are the values of the template's Parameters by name. They override the
	// defaults. For the types AWS::SSM::Parameter::Value<…>, give the value itself. (A
	// deployment gives the name in Parameter Store, and so does the default.) If a local
	// run needs a parameter without a value, Read returns a [MissingValueError].
	Parameters map[string]string
	// References are the values of the template's dynamic references. The key is the text
	// between "{{resolve:" and "}}", such as "ssm:/shop/table:1". If a local run needs a
	// missing reference, Read returns a [MissingValueError].
	References map[string]string
	// Region is AWS::Region. Default: us-east-1.
	Region string
	// AccountID is AWS::AccountId, twelve digits. Default: 000000000000.
	AccountID string
	// StackName is AWS::StackName. Default: local.
	StackName string
	// Rename returns the name to use for a resource of a type, such as AWS::SQS::Queue,
	// given its name in the template. The result also appears in ARNs and URLs. Default:
	// nil, names are not changed.
	Rename func(resourceType, name string) string

	tablesOnly bool // set by TablesForTest: read only the tables
}

// Read reads the SAM template at path. Errors begin with path:line:column.
func Read(path string, options Options) (*Template, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the SAM template: %w", err)
	}
	return Parse(path, data, options)
}

// Parse is like Read for a template in memory. Errors begin with name in place of a path.
func Parse(name string, data []byte, options Options) (*Template, error) {
	options.Region = orElse(options.Region, "us-east-1")
	options.AccountID = orElse(options.AccountID, "000000000000")
	options.StackName = orElse(options.StackName, "local")
	t, err := parse(data, options)
	if missing := (*MissingValueError)(nil); errors.As(err, &missing) {
		missing.name = name
		return nil, missing
	}
	if at := (*placeError)(nil); errors.As(err, &at) {
		return nil, fmt.Errorf("%s:%w", name, err)
	}
	if t != nil {
		for i, warning := range t.Warnings {
			t.Warnings[i] = name + ":" + warning
		}
		t.addName(name)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return t, nil
}

// addName puts the name of the template in front of the places of statements.
func (t *Template) addName(name string) {
	for _, f := range t.Functions {
		for i := range f.Role.Statements {
			f.Role.Statements[i].At = name + ":" + f.Role.Statements[i].At
		}
	}
}

func orElse(value, fallback string) string {
	if value == "" {
		return fallback
	}
	return value
}

func parse(data []byte, options Options) (*Template, error) {
	root, err := parseYAML(data)
	if err != nil {
		return nil, err
	}
	resources := root.field("Resources")
	if resources == nil || resources.kind != mapping {
		return nil, fmt.Errorf("the template has no Resources section")
	}
	for name := range options.Parameters {
		if root.field("Parameters").field(name) == nil {
			return nil, fmt.Errorf("a value was given for parameter %s, which the template does not have", name)
		}
	}
	r := &reader{
		globals: root.field("Globals"),
		evaluator: evaluator{
			options:    options,
			parameters: root.field("Parameters"),
			conditions: root.field("Conditions"),
			mappings:   root.field("Mappings"),
			resources:  resources,
			pending:    map[string]bool{},
		},
	}
	t := &Template{Region: options.Region, AccountID: options.AccountID}
	for _, logicalID := range resources.keys {
		// The suffix also selects the types of tables in replacements, so that they are refused
		// here too.
		if options.tablesOnly && !strings.HasSuffix(typeOf(resources.fields[logicalID]), "Table") {
			continue
		}
		// If a value is missing, ignore other errors: its placeholder may be the cause.
		if err := r.resource(t, logicalID, resources.fields[logicalID]); err != nil && len(r.missing.places) == 0 {
			return nil, err
		}
	}
	if len(r.missing.places) > 0 {
		return nil, &r.missing
	}
	t.Warnings = r.warnings
	return t, nil
}

// reader converts resources into functions, tables and queues.
type reader struct {
	evaluator
	globals  *node
	warnings []string // each begins with its line and column
}

// replacements are the resource types that are refused, with the types to use instead. Without
// this list, such resources would be silently missing from a local run.
var replacements = map[string]string{
	"AWS::Serverless::SimpleTable": "AWS::DynamoDB::Table",
	"AWS::DynamoDB::GlobalTable":   "AWS::DynamoDB::Table",
	"AWS::Lambda::Function":        "AWS::Serverless::Function",

	"AWS::Lambda::EventSourceMapping": "an event of the function, of type SQS or DynamoDB",
}

func (r *reader) resource(t *Template, logicalID string, resource *node) error {
	if exists, err := r.exists(resource); err != nil || !exists {
		return err
	}
	switch kind := typeOf(resource); kind {
	case "AWS::Serverless::Function":
		f, err := r.function(logicalID, resource)
		if err != nil {
			return err
		}
		t.Functions = append(t.Functions, f)
	case "AWS::DynamoDB::Table":
		table, err := r.table(logicalID, resource)
		if err != nil {
			return err
		}
		t.Tables = append(t.Tables, table)
	case "AWS::SQS::Queue":
		queue, err := r.queue(logicalID, resource)
		if err != nil {
			return err
		}
		t.Queues = append(t.Queues, queue)
	default:
		if instead, refused := replacements[kind]; refused {
			return errorAt(resource, "%s: %s is not read for a local run; use %s", logicalID, kind, instead)
		}
	}
	return nil
}
