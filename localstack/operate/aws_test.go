package operate_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/jmespath/go-jmespath"
)

// awsCommand is the name under which this test's own binary acts as the AWS CLI. The CLI and
// the SDK have one service model, so they have the same names of operations and options (AWS
// CLI User Guide, "Using the AWS CLI": names in kebab case). The page's commands therefore run
// without the CLI, and a command that the CLI would refuse is refused.
const awsCommand = "aws"

// isAWS reports whether this process acts as the CLI.
func isAWS() bool { return filepath.Base(os.Args[0]) == awsCommand }

// runAWS runs a command line of the CLI and returns its exit code.
func runAWS(args []string) int {
	out, err := callAWS(context.Background(), args)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Print(out)
	return 0
}

// ofEveryCommand has the options that the CLI itself handles, for any command.
var ofEveryCommand = map[string]bool{"query": true, "output": true, "region": true}

// clients returns the clients of the services that the page's commands call, by the CLI's
// names of the services.
func clients(ctx context.Context) map[string]any {
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return nil
	}
	return map[string]any{
		"dynamodb": dynamodb.NewFromConfig(cfg), "sqs": sqs.NewFromConfig(cfg),
		"kms": kms.NewFromConfig(cfg), "lambda": lambda.NewFromConfig(cfg),
	}
}

// operation returns the method of a service's client for an operation. service and name are the
// names that the CLI uses. known reports whether there is such a method.
func operation(all map[string]any, service, name string) (method reflect.Value, known bool) {
	client, known := all[service]
	if !known {
		return method, false
	}
	method = reflect.ValueOf(client).MethodByName(pascal(name))
	return method, method.IsValid()
}

// callAWS runs a command line of the CLI, and returns what the CLI prints.
func callAWS(ctx context.Context, args []string) (string, error) {
	if len(args) < 2 {
		return "", fmt.Errorf("aws: %q names no service and operation", args)
	}
	options, err := optionsOf(args[2:])
	if err != nil {
		return "", err
	}
	if args[0] == "logs" && args[1] == "filter-log-events" {
		found, err := filterLogEvents(options)
		if err != nil {
			return "", err
		}
		return printed(found, options)
	}
	method, known := operation(clients(ctx), args[0], args[1])
	if !known {
		return "", fmt.Errorf("aws: there is no operation %s of %s here", args[1], args[0])
	}
	input := reflect.New(method.Type().In(1).Elem())
	for name, values := range options {
		if ofEveryCommand[name] {
			continue
		}
		field := input.Elem().FieldByName(pascal(name))
		if !field.IsValid() {
			return "", fmt.Errorf("aws: %s has no option --%s", args[1], name)
		}
		value, err := option(field.Type(), values)
		if err != nil {
			return "", fmt.Errorf("aws: --%s %q: %w", name, values, err)
		}
		field.Set(value)
	}
	results := method.Call([]reflect.Value{reflect.ValueOf(ctx), input})
	if err, failed := results[1].Interface().(error); failed {
		return "", err
	}
	return printed(membersOf(results[0].Elem()), options)
}

// optionsOf returns the values of each option of a command line.
func optionsOf(args []string) (map[string][]string, error) {
	all, name := map[string][]string{}, ""
	for _, arg := range args {
		if option, is := strings.CutPrefix(arg, "--"); is {
			name = option
			all[name] = nil
			continue
		}
		if name == "" {
			return nil, fmt.Errorf("aws: %q belongs to no option", arg)
		}
		all[name] = append(all[name], arg)
	}
	return all, nil
}

// filterLogEvents returns the output of the CloudWatch Logs operation FilterLogEvents. It reads
// the functions' log from the file that the page names, whatever the log group. A filter pattern
// must compare members of a JSON object with texts, and selects the lines for which one of the
// comparisons holds (CloudWatch Logs User Guide, "Filter pattern syntax").
func filterLogEvents(options map[string][]string) (map[string]any, error) {
	pattern := strings.Join(options["filter-pattern"], " ")
	const comparison = `\(\$\.(\w+) = "(\w+)"\)`
	form := regexp.MustCompile(`^\{ ` + comparison + `( \|\| ` + comparison + `)* \}$`)
	comparisons := regexp.MustCompile(comparison).FindAllStringSubmatch(pattern, -1)
	start, err := strconv.ParseInt(strings.Join(options["start-time"], " "), 10, 64)
	if !form.MatchString(pattern) || err != nil || len(options["log-group-name"]) != 1 {
		return nil, fmt.Errorf("aws: logs filter-log-events has the options %q", options)
	}
	log, err := os.ReadFile(logFile)
	if err != nil {
		return nil, err
	}
	found := []any{}
	for line := range strings.Lines(string(log)) {
		text, members := objectIn(line)
		if !slices.ContainsFunc(comparisons, func(c []string) bool { return members[c[1]] == c[2] }) {
			continue
		}
		logged, err := time.Parse(time.RFC3339, fmt.Sprint(members["timestamp"]))
		if err != nil {
			return nil, err
		}
		if logged.UnixMilli() >= start {
			found = append(found, map[string]any{"message": text})
		}
	}
	return map[string]any{"events": found}, nil
}

// objectIn returns the JSON object at the end of a log line, as text and decoded. The line may
// begin with the name of the function. Both results are empty if the line has no object.
func objectIn(line string) (text string, members map[string]any) {
	at := strings.IndexByte(line, '{')
	if at < 0 || json.Unmarshal([]byte(line[at:]), &members) != nil {
		return "", nil
	}
	return strings.TrimSpace(line[at:]), members
}

// pascal returns the API's spelling of a name of the CLI: TableName for table-name.
func pascal(name string) string {
	var all strings.Builder
	for word := range strings.SplitSeq(name, "-") {
		if word != "" {
			all.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	return all.String()
}

// option converts the words after an option to a type of the SDK. The CLI takes text, a
// boolean, a list of words, JSON, and for a structure the shorthand Name=value,Name=value.
func option(kind reflect.Type, values []string) (reflect.Value, error) {
	none, text := reflect.Value{}, strings.Join(values, " ")
	switch {
	case kind.Kind() == reflect.Slice && kind.Elem().Kind() == reflect.String:
		words := reflect.MakeSlice(kind, 0, len(values))
		for _, word := range values {
			words = reflect.Append(words, reflect.ValueOf(word).Convert(kind.Elem()))
		}
		return words, nil
	case kind == reflect.TypeFor[map[string]types.AttributeValue](), kind.Kind() == reflect.Slice:
		return fromJSON(kind, []byte(text))
	case kind.Kind() == reflect.Pointer && kind.Elem().Kind() == reflect.Struct:
		structure := reflect.New(kind.Elem())
		for pair := range strings.SplitSeq(text, ",") {
			name, value, _ := strings.Cut(pair, "=")
			field := structure.Elem().FieldByName(name)
			if !field.IsValid() {
				return none, fmt.Errorf("there is no %q", name)
			}
			v, err := option(field.Type(), []string{value})
			if err != nil {
				return none, err
			}
			field.Set(v)
		}
		return structure, nil
	case kind == reflect.TypeFor[*string]():
		return reflect.ValueOf(&text), nil
	case kind == reflect.TypeFor[*bool]():
		b, err := strconv.ParseBool(text)
		return reflect.ValueOf(&b), err
	default:
		return none, fmt.Errorf("a value of %v is not known here", kind)
	}
}

// fromJSON reads a value in the JSON form of the CLI. A name that the API doesn't have
// is an error.
func fromJSON(kind reflect.Type, text []byte) (reflect.Value, error) {
	none := reflect.Value{}
	switch {
	case kind == reflect.TypeFor[map[string]types.AttributeValue]():
		item, err := attributevalue.UnmarshalMapJSON(text)
		return reflect.ValueOf(item), err
	case kind.Kind() == reflect.Pointer && kind.Elem().Kind() == reflect.Struct:
		structure, err := fromJSON(kind.Elem(), text)
		if err != nil {
			return none, err
		}
		return structure.Addr(), nil
	case kind.Kind() == reflect.Slice:
		var parts []json.RawMessage
		if err := json.Unmarshal(text, &parts); err != nil {
			return none, err
		}
		all := reflect.MakeSlice(kind, 0, len(parts))
		for _, part := range parts {
			value, err := fromJSON(kind.Elem(), part)
			if err != nil {
				return none, err
			}
			all = reflect.Append(all, value)
		}
		return all, nil
	case kind.Kind() == reflect.Struct:
		var parts map[string]json.RawMessage
		if err := json.Unmarshal(text, &parts); err != nil {
			return none, err
		}
		structure := reflect.New(kind).Elem()
		for name, part := range parts {
			field := structure.FieldByName(name)
			if !field.IsValid() {
				return none, fmt.Errorf("there is no %q", name)
			}
			value, err := fromJSON(field.Type(), part)
			if err != nil {
				return none, err
			}
			field.Set(value)
		}
		return structure, nil
	default:
		value := reflect.New(kind)
		err := json.Unmarshal(text, value.Interface())
		return value.Elem(), err
	}
}

// membersOf returns the members of an output that the CLI prints. It leaves out ConsumedCapacity,
// which DynamoDB Local always returns, and DynamoDB only on request.
func membersOf(output reflect.Value) map[string]any {
	all := map[string]any{}
	for i := range output.NumField() {
		if name := output.Type().Field(i).Name; output.Type().Field(i).IsExported() && name != "ResultMetadata" && name != "ConsumedCapacity" && !output.Field(i).IsZero() {
			all[name] = output.Field(i).Interface()
		}
	}
	return all
}

// printed returns an output as the CLI prints it: as JSON, as text, or nothing if the output has no
// members.
func printed(members map[string]any, options map[string][]string) (string, error) {
	if len(members) == 0 {
		return "", nil
	}
	text, err := json.MarshalIndent(members, "", "    ")
	if query := options["query"]; query != nil && err == nil {
		var parsed any
		if err = json.Unmarshal(text, &parsed); err == nil {
			parsed, err = jmespath.Search(strings.Join(query, " "), parsed)
		}
		if err != nil {
			return "", err
		}
		if slices.Equal(options["output"], []string{"text"}) {
			return asText(parsed), nil
		}
		text, err = json.MarshalIndent(parsed, "", "    ")
	}
	return string(text) + "\n", err
}

// asText returns a value in the CLI's text format: one line for each list, with tabs between
// the members (AWS CLI User Guide, "Setting the output format in the AWS CLI").
func asText(value any) string {
	list, isList := value.([]any)
	if !isList {
		return fmt.Sprintln(value)
	}
	var words []string
	var lines strings.Builder
	for _, member := range list {
		if _, isList := member.([]any); isList {
			lines.WriteString(asText(member))
		} else {
			words = append(words, fmt.Sprint(member))
		}
	}
	if len(words) > 0 {
		lines.WriteString(strings.Join(words, "\t") + "\n")
	}
	return lines.String()
}
