package template

import (
	"errors"
	"time"
)

// Function is a resource of type AWS::Serverless::Function.
type Function struct {
	LogicalID   string
	Name        string // FunctionName, or the logical ID if there is none
	Handler     string
	Runtime     string
	PackageType string        // Zip or Image; empty means Zip
	CodeURI     string        // relative to the template's folder; empty means that folder; s3://BUCKET/KEY for an object in a bucket
	InlineCode  bool          // the template contains the code
	BuildMethod string        // from the resource's Metadata, for sam build; empty if not set
	MemoryMB    int           // default 128
	Timeout     time.Duration // default 3 s; between 1 s and 900 s in a template
	// MaxConcurrency is the maximum number of concurrent invocations of an execution
	// environment on Lambda Managed Instances, from PerExecutionEnvironmentMaxConcurrency
	// in CapacityProviderConfig. It is 0 for a function that does not run on them.
	MaxConcurrency int
	LogGroup       string            // from LoggingConfig; default /aws/lambda/NAME
	LogFormat      string            // from LoggingConfig: Text (the default) or JSON
	Environment    map[string]string // never nil
	Routes         []Route
	URL            *FunctionURL // nil if there is no FunctionUrlConfig
	Sources        []Source     // events of type SQS and DynamoDB
	Role           Role         // execution role
	OtherEvents    []string     // "Name (Type)" of each event of another type, or with a queue or stream of another stack
}

// FunctionURL is the FunctionUrlConfig of a function. It has no fields, because Read refuses any
// AuthType except NONE and any InvokeMode except BUFFERED.
type FunctionURL struct{}

func (r *reader) function(logicalID string, resource *node) (*Function, error) {
	p := r.properties(logicalID, "Function", resource)
	f := &Function{LogicalID: logicalID}
	var err error
	if f.Name, err = r.physicalName(logicalID, resource); err != nil {
		return nil, err
	}
	if f.Handler, err = p.text("Handler", ""); err != nil {
		return nil, err
	}
	if err := p.code(f, resource); err != nil {
		return nil, err
	}
	if f.MemoryMB, err = p.number("MemorySize", 128, 128, 10240); err != nil {
		return nil, err
	}
	seconds, err := p.number("Timeout", 3, 1, 900)
	if err != nil {
		return nil, err
	}
	f.Timeout = time.Duration(seconds) * time.Second
	if f.MaxConcurrency, err = p.maxConcurrency(); err != nil {
		return nil, err
	}
	logging, _, err := p.inner("LoggingConfig")
	if err != nil {
		return nil, err
	}
	if f.LogGroup, err = logging.text("LogGroup", "/aws/lambda/"+f.Name); err != nil {
		return nil, err
	}
	if f.LogFormat, err = logging.text("LogFormat", "Text"); err != nil {
		return nil, err
	}
	if f.Environment, err = p.environment(); err != nil {
		return nil, err
	}
	if err := p.events(f); err != nil {
		return nil, err
	}
	f.Role = p.role(logicalID, resource)
	f.URL, err = p.functionURL()
	return f, err
}

// code reads where the code of a function is and how sam build would build it.
func (p properties) code(f *Function, resource *node) error {
	var err error
	if f.Runtime, err = p.text("Runtime", ""); err != nil {
		return err
	}
	if f.PackageType, err = p.text("PackageType", ""); err != nil {
		return err
	}
	f.InlineCode = p.node.field("InlineCode") != nil
	if f.CodeURI, err = p.codeURI(); err != nil {
		return err
	}
	metadata := properties{p.reader, p.owner + ".Metadata", resource.field("Metadata")}
	f.BuildMethod, err = metadata.text("BuildMethod", "")
	return err
}

// codeURI reads CodeUri, which is a path or an object in a bucket. It returns an object as
// s3://BUCKET/KEY.
func (p properties) codeURI() (string, error) {
	const key = "CodeUri"
	value, err := p.get(key)
	if err != nil || value == nil || value.kind != mapping {
		if err != nil {
			return "", err
		}
		return p.text(key, "")
	}
	object, _, err := p.inner(key)
	if err != nil {
		return "", err
	}
	bucket, err := object.required("Bucket")
	if err != nil {
		return "", err
	}
	name, err := object.required("Key")
	return "s3://" + bucket + "/" + name, err
}

// maxConcurrency returns the PerExecutionEnvironmentMaxConcurrency of a function that runs on
// Lambda Managed Instances, which is a function with a CapacityProviderConfig. It returns 0 for
// other functions. The value is required, because its default depends on the runtime and the
// instance.
func (p properties) maxConcurrency() (int, error) {
	const key = "PerExecutionEnvironmentMaxConcurrency"
	config, ok, err := p.inner("CapacityProviderConfig")
	if err != nil || !ok {
		return 0, err
	}
	n, err := config.number(key, 0, 1, 1600)
	if err == nil && n == 0 {
		err = errorAt(config.node, "%s: a local run needs %s: its default depends on the instance", config.owner, key)
	}
	return n, err
}

func (p properties) environment() (map[string]string, error) {
	out := map[string]string{}
	environment, _, err := p.inner("Environment")
	if err != nil {
		return nil, err
	}
	variables, _, err := environment.inner("Variables")
	if err != nil {
		return nil, err
	}
	for _, key := range variables.node.keys {
		value, err := variables.get(key)
		if err != nil {
			return nil, err
		}
		if value == nil { // AWS::NoValue
			continue
		}
		if out[key], err = variables.text(key, ""); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (p properties) functionURL() (*FunctionURL, error) {
	config, ok, err := p.inner("FunctionUrlConfig")
	if err != nil || !ok {
		return nil, err
	}
	for key, supported := range map[string]string{"AuthType": "NONE", "InvokeMode": "BUFFERED"} {
		value, err := config.text(key, supported)
		if err != nil {
			return nil, err
		}
		if value != supported {
			return nil, errorAt(config.node, "%s: %s %s is not emulated in a local run, only %s is", config.owner, key, value, supported)
		}
	}
	return &FunctionURL{}, nil
}

// isElsewhere reports whether the source of an event is known only to AWS, such as a queue or a
// stream of another stack. It ignores all other errors, which queueSource or streamSource
// returns.
func (p properties) isElsewhere() bool {
	for _, key := range []string{"Queue", "Stream"} {
		if _, err := p.get(key); errors.Is(err, errElsewhere) {
			return true
		}
	}
	return false
}
