package metrics

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// The limits of "Specification: Embedded metric format", and of MetricDatum and
// Dimension in the Amazon CloudWatch API Reference.
const (
	maxMetrics    = 100  // metrics in a directive
	maxValues     = 100  // values of a metric
	maxDimensions = 30   // dimensions in a set
	maxName       = 1024 // bytes of a metric's name
	maxLabel      = 255  // bytes of a namespace, and of a dimension's name
	maxValue      = 1024 // bytes of a dimension's value
)

// maxMagnitude is the largest number that CloudWatch accepts, and -maxMagnitude is the smallest.
var maxMagnitude = math.Ldexp(1, 360)

// directive is an entry of CloudWatchMetrics: metrics, and the sets of dimensions for each of
// them.
type directive struct {
	namespace string
	sets      [][]string
	metrics   []definition
}

type definition struct {
	name, unit string
	resolution int
}

func directiveOf(o object) (directive, error) {
	var d directive
	var metrics []object
	err := errors.Join(o.get("Namespace", &d.namespace), o.get("Dimensions", &d.sets), o.get("Metrics", &metrics))
	for _, m := range metrics {
		one := definition{unit: "None", resolution: 60}
		err = errors.Join(err, m.get("Name", &one.name), m.get("Unit", &one.unit), m.get("StorageResolution", &one.resolution))
		d.metrics = append(d.metrics, one)
	}
	return d, err
}

// read appends the directive's data to doc.Data, and deletes the values of its metrics from
// doc.Members. It returns an error if CloudWatch would refuse the directive.
func (d directive) read(root object, at time.Time, doc *Document) error {
	switch {
	case !printable(d.namespace, maxLabel) || strings.HasPrefix(d.namespace, ":"):
		return fmt.Errorf("the Namespace is %q", d.namespace)
	case strings.HasPrefix(d.namespace, "AWS/"):
		return fmt.Errorf("the Namespace is %q, which is AWS's own", d.namespace)
	case len(d.sets) == 0:
		return errors.New("there is no set of dimensions; a metric without dimensions has an empty one")
	case len(d.metrics) == 0 || len(d.metrics) > maxMetrics:
		return fmt.Errorf("there are %d metrics; there may be 1 to %d", len(d.metrics), maxMetrics)
	}
	var sets []map[string]string
	for _, names := range d.sets {
		set, err := dimensions(root, names)
		if err != nil {
			return err
		}
		sets = append(sets, set)
	}
	for _, m := range d.metrics {
		values, err := m.values(root)
		if err != nil {
			return fmt.Errorf("the metric %q: %w", m.name, err)
		}
		delete(doc.Members, m.name)
		for _, set := range sets {
			doc.Data = append(doc.Data, Datum{d.namespace, m.name, m.unit, set, values, at})
		}
	}
	return nil
}

// dimensions returns the values of the dimensions with these names. It returns an error if the
// document lacks a value or if CloudWatch would refuse the set.
func dimensions(root object, names []string) (map[string]string, error) {
	if len(names) > maxDimensions {
		return nil, fmt.Errorf("a set has %d dimensions; it may have %d", len(names), maxDimensions)
	}
	set := map[string]string{}
	for _, name := range names {
		var value *string
		if err := root.get(name, &value); err != nil || value == nil {
			return nil, fmt.Errorf("the dimension %q has no text for a value", name)
		}
		if !printable(name, maxLabel) || strings.HasPrefix(name, ":") || !printable(*value, maxValue) {
			return nil, fmt.Errorf("the dimension %q is %q", name, *value)
		}
		set[name] = *value
	}
	return set, nil
}

// printable reports whether a text has at most the given number of bytes, all of them printable
// ASCII, and at least one that is not a space.
func printable(text string, most int) bool {
	return len(text) <= most && strings.TrimSpace(text) != "" && !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' })
}

// values returns the values of a metric. The document has a number or a list of numbers. values
// returns an error if CloudWatch would refuse the metric.
func (m definition) values(root object) ([]float64, error) {
	raw, there := root[m.name]
	switch {
	case m.name == "" || len(m.name) > maxName:
		return nil, fmt.Errorf("a name has 1 to %d bytes", maxName)
	case !slices.Contains(units, m.unit):
		return nil, fmt.Errorf("CloudWatch has no unit %q", m.unit)
	case m.resolution != 1 && m.resolution != 60:
		return nil, fmt.Errorf("StorageResolution is %d; it may be 1 or 60", m.resolution)
	case !there:
		return nil, errors.New("the document has no value of it")
	}
	if !bytes.HasPrefix(raw, []byte("[")) {
		raw = slices.Concat([]byte("["), raw, []byte("]"))
	}
	var numbers []*float64 // pointers, to detect null
	if err := json.Unmarshal(raw, &numbers); err != nil || slices.Contains(numbers, nil) {
		return nil, errors.New("its value is neither a number nor a list of numbers")
	}
	if len(numbers) == 0 || len(numbers) > maxValues {
		return nil, fmt.Errorf("it has %d values; it may have 1 to %d", len(numbers), maxValues)
	}
	values := make([]float64, len(numbers))
	for i, n := range numbers {
		if values[i] = *n; math.Abs(*n) > maxMagnitude {
			return nil, fmt.Errorf("its value %g is beyond 2^360", *n)
		}
	}
	return values, nil
}

// units are the units that CloudWatch accepts (Amazon CloudWatch API Reference, MetricDatum).
var units = func() []string {
	all := []string{"None", "Count", "Percent", "Seconds", "Microseconds", "Milliseconds", "Count/Second"}
	for _, per := range []string{"", "/Second"} {
		for _, of := range []string{"bytes", "bits"} {
			all = append(all, "B"+of[1:]+per)
			for _, scale := range []string{"Kilo", "Mega", "Giga", "Tera"} {
				all = append(all, scale+of+per)
			}
		}
	}
	return all
}()
