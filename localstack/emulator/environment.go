package emulator

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

// inherited are the only variables that a function sees of the emulator's own
// environment.
var inherited = []string{"PATH", "HOME", "TMPDIR"}

// environment returns what a process sees: "Using Lambda environment variables"
// lists it. Credentials are dummies, and the user's own AWS files are hidden,
// so that no local run can reach a real account by accident.
func environment(p *pool, runtimeAPI string) []string {
	f, o, binary := p.function, p.options, p.binary
	variables := map[string]string{
		"AWS_ACCESS_KEY_ID":               o.AccessKeyID(f.LogicalID),
		"AWS_SECRET_ACCESS_KEY":           "local",
		"AWS_SESSION_TOKEN":               "local",
		"AWS_CONFIG_FILE":                 os.DevNull,
		"AWS_SHARED_CREDENTIALS_FILE":     os.DevNull,
		"AWS_EC2_METADATA_DISABLED":       "true",
		"AWS_REGION":                      o.Region,
		"AWS_DEFAULT_REGION":              o.Region,
		"AWS_LAMBDA_FUNCTION_NAME":        f.Name,
		"AWS_LAMBDA_FUNCTION_VERSION":     "$LATEST",
		"AWS_LAMBDA_FUNCTION_MEMORY_SIZE": strconv.Itoa(f.MemoryMB),
		"AWS_LAMBDA_INITIALIZATION_TYPE":  "on-demand",
		"AWS_LAMBDA_LOG_GROUP_NAME":       f.LogGroup,
		"AWS_LAMBDA_LOG_STREAM_NAME":      time.Now().UTC().Format("2006/01/02") + "/[$LATEST]" + randomHex(16),
		"AWS_LAMBDA_RUNTIME_API":          runtimeAPI,
		"LAMBDA_TASK_ROOT":                filepath.Dir(binary),
		"LAMBDA_RUNTIME_DIR":              filepath.Dir(binary),
		"LANG":                            "en_US.UTF-8",
		"TZ":                              ":UTC",
		"_HANDLER":                        f.Handler,
	}
	if p.slots > 1 {
		variables["AWS_LAMBDA_INITIALIZATION_TYPE"] = "lambda-managed-instances"
	}
	if f.LogFormat == "JSON" {
		variables["AWS_LAMBDA_LOG_FORMAT"] = "JSON"
	}
	if o.Endpoint != "" {
		variables["AWS_ENDPOINT_URL_DYNAMODB"] = o.Endpoint
	}
	for _, name := range inherited {
		if value, set := os.LookupEnv(name); set {
			variables[name] = value
		}
	}
	for name, value := range f.Environment {
		variables[name] = value
	}
	for name, value := range o.Env {
		variables[name] = value
	}
	if f.MaxConcurrency > 0 || variables[concurrencyVariable] != "" {
		variables[concurrencyVariable] = strconv.Itoa(p.slots)
	}
	list := make([]string, 0, len(variables))
	for name, value := range variables {
		list = append(list, name+"="+value)
	}
	slices.Sort(list)
	return list
}
