package template

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

// Template is what a local run needs of a SAM template. It is plain data: a
// caller may change it before use, say to shorten a timeout in a test.
type Template struct {
	Functions []*Function // in the template's order
	Tables    []Table     // in the template's order
	Queues    []Queue     // in the template's order
	Region    string
	AccountID string

	// Warnings name what the template asks for and a local run does not do, each
	// with its place: path:line:column.
	Warnings []string
}

// Function is one AWS::Serverless::Function.
type Function struct {
	LogicalID   string
	Name        string // FunctionName, or the logical ID where there is none
	Handler     string
	Runtime     string
	PackageType string        // Zip or Image; empty: Zip
	CodeURI     string        // relative to the template's folder, empty: that folder; s3://BUCKET/KEY where it is an object in a bucket
	InlineCode  bool          // there is code in the template itself
	BuildMethod string        // of the resource's Metadata, what sam build is to do; empty: none
	MemoryMB    int           // default 128
	Timeout     time.Duration // default 3 s; between 1 s and 900 s in a template
	// MaxConcurrency is CapacityProviderConfig's PerExecutionEnvironmentMaxConcurrency,
	// how many invocations an environment has at a time on Lambda Managed Instances;
	// 0 for a function that runs on none.
	MaxConcurrency int
	LogGroup       string            // LoggingConfig's, default /aws/lambda/NAME
	LogFormat      string            // LoggingConfig's: Text (the default) or JSON
	Environment    map[string]string // never nil
	Routes         []Route
	URL            *FunctionURL // nil without FunctionUrlConfig
	Sources        []Source     // SQS and DynamoDB events
	OtherEvents    []string     // "Name (Type)" of the events of any other type, or of another stack's queue or stream
}

// APIKind tells the two kinds of API Gateway apart.
type APIKind int

// The kinds of API that route requests to functions.
const (
	HTTPAPI APIKind = iota // AWS::Serverless::HttpApi, payload format 2.0
	RESTAPI                // AWS::Serverless::Api, payload format 1.0
)

// Route is one HttpApi or Api event of a function.
type Route struct {
	API        string // the API's logical ID
	Kind       APIKind
	Method     string // upper case, or "ANY"; empty for the $default route
	Path       string // "/payments/{id}"; empty for the $default route
	Stage      string // "$default" unless the API names one
	Authorizer *Authorizer
	Scopes     []string      // the token needs one of them; empty: none is asked for
	Timeout    time.Duration // of the integration: 30 s for HTTP APIs, 29 s for REST APIs
	// BinaryMediaTypes are the REST API's; HTTP APIs have none.
	BinaryMediaTypes []string
}

// Key returns the route key as API Gateway writes it: "POST /payments" or
// "$default".
func (r Route) Key() string {
	if r.Path == "" {
		return "$default"
	}
	return r.Method + " " + r.Path
}

// Authorizer is a JWT authorizer of an HTTP API or a Cognito authorizer of a
// REST API.
type Authorizer struct {
	Name   string
	Header string // the header that carries the token, default "Authorization"
}

// FunctionURL is a function's FunctionUrlConfig; only AuthType NONE and
// InvokeMode BUFFERED are read, the others are refused.
type FunctionURL struct{}

// Function returns the function with this logical ID or name, or nil.
func (t *Template) Function(id string) *Function {
	for _, f := range t.Functions {
		if f.LogicalID == id || f.Name == id {
			return f
		}
	}
	return nil
}

// Options are what CloudFormation would know at deployment.
type Options struct {
	// Parameters are values of the template's Parameters, by their names; they
	// override the defaults. For a type AWS::SSM::Parameter::Value<…> it is the
	// value itself, not the name in Parameter Store, which a deployment gives and
	// which its default is. A parameter that has neither is an error where a local
	// run needs it.
	Parameters map[string]string
	// References are values of the template's dynamic references, by what stands
	// between "{{resolve:" and "}}", such as "ssm:/shop/table:1". One that is
	// missing is an error where a local run needs it.
	References map[string]string
	// Region is AWS::Region. Default: us-east-1.
	Region string
	// AccountID is AWS::AccountId, twelve digits. Default: 000000000000.
	AccountID string
	// StackName is AWS::StackName. Default: local.
	StackName string
	// Rename gives a resource of a type, such as AWS::SQS::Queue, another name than the
	// template does: everywhere, in ARNs and URLs too. Default: none has another one.
	Rename func(resourceType, name string) string

	tablesOnly bool // skip everything but tables; see TablesForTest
}

// Read reads the SAM template at path. Errors begin with path:line:column.
func Read(path string, options Options) (*Template, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the SAM template: %w", err)
	}
	return Parse(path, data, options)
}

// Parse is Read for a template in memory; name stands for its path in errors.
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
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return t, nil
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
		// The suffix covers the types that replacements refuses in favor of a table.
		if options.tablesOnly && !strings.HasSuffix(typeOf(resources.fields[logicalID]), "Table") {
			continue
		}
		// After a missing value, an error may only mean that its stand-in is invalid.
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

// reader turns resources into functions, tables and queues.
type reader struct {
	evaluator
	globals  *node
	warnings []string // each begins with its line and column
}

// replacements names the resource types that would be missing from a local run
// without a word, and what to write instead.
var replacements = map[string]string{
	"AWS::Serverless::SimpleTable": "AWS::DynamoDB::Table",
	"AWS::DynamoDB::GlobalTable":   "AWS::DynamoDB::Table",
	"AWS::Lambda::Function":        "AWS::Serverless::Function",

	"AWS::Lambda::EventSourceMapping": "an event of the function, of type SQS or DynamoDB",
}

func (r *reader) resource(t *Template, logicalID string, resource *node) error {
	if condition := resource.field("Condition"); condition != nil {
		holds, err := r.named(condition, condition.text)
		if err != nil || !holds {
			return err
		}
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
