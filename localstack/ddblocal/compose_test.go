package ddblocal

import (
	"os"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

func TestCompose_SameVersionAndLoopbackAlone(t *testing.T) {
	text, err := os.ReadFile("../compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var compose struct {
		Services map[string]struct {
			Image string
			Ports []string
		}
	}
	if err := yaml.Unmarshal(text, &compose); err != nil {
		t.Fatal(err)
	}
	if got := compose.Services["dynamodb"].Image; got != image {
		t.Errorf("compose.yaml runs %q, the launcher %q", got, image)
	}
	for name, service := range compose.Services {
		if _, tag, found := strings.Cut(service.Image, ":"); !found || tag == "latest" {
			t.Errorf("%s: image %q is not pinned", name, service.Image)
		}
		if len(service.Ports) == 0 {
			t.Errorf("%s publishes no port", name)
		}
		for _, port := range service.Ports {
			if !strings.HasPrefix(port, "127.0.0.1:") {
				t.Errorf("%s publishes %q, which is not on loopback alone", name, port)
			}
		}
	}
}
