package acp

import (
	"fmt"
	"slices"
	"strings"

	sdk "github.com/coder/acp-go-sdk"
)

// settings are what a conversation can be set to, as the program tells when it is
// opened: in lists of their own, or among options.
type settings struct {
	SessionID string `json:"sessionId"`
	Modes     struct {
		Current   string `json:"currentModeId"`
		Available []struct {
			ID string `json:"id"`
		} `json:"availableModes"`
	} `json:"modes"`
	Models struct {
		Current   string `json:"currentModelId"`
		Available []struct {
			ID string `json:"modelId"`
		} `json:"availableModels"`
	} `json:"models"`
	Options []option `json:"configOptions"`
}

type option struct {
	ID       string `json:"id"`
	Category string `json:"category"`
	Current  any    `json:"currentValue"`
	Values   []struct {
		Value any `json:"value"`
		// A group holds values of its own.
		Options []struct {
			Value any `json:"value"`
		} `json:"options"`
	} `json:"options"`
}

func (o *option) offers() []string {
	var list []string
	add := func(value any) {
		if text, ok := value.(string); ok {
			list = append(list, text)
		}
	}
	for _, v := range o.Values {
		add(v.Value)
		for _, v := range v.Options {
			add(v.Value)
		}
	}
	return list
}

// freeModes are the modes in which known programs ask nobody for permission.
func freeModes() []string {
	return []string{"bypassPermissions", "agent-full-access", "yolo"}
}

// setting is one request that sets something.
type setting struct {
	what   string
	method string
	params any
	must   bool // a failure ends the run
}

// requests are what must be set: the mode that asks nobody, where there is one, and
// the model that was asked for.
func (s *settings) requests(session, model string, warn func(string)) []setting {
	var list []setting
	if mode, ok := s.mode(session); ok {
		list = append(list, mode)
	}
	if model != "" {
		if m, ok := s.model(session, model); ok {
			list = append(list, m)
		} else if m.must {
			warn(fmt.Sprintf("the agent offers no choice of the model: %q was not set", model))
		}
	}
	return list
}

func (s *settings) mode(session string) (setting, bool) {
	for _, free := range freeModes() {
		for _, m := range s.Modes.Available {
			if m.ID == free {
				return setting{"mode " + free, sdk.AgentMethodSessionSetMode, sdk.SetSessionModeRequest{
					SessionId: sdk.SessionId(session), ModeId: sdk.SessionModeId(free),
				}, false}, s.Modes.Current != free
			}
		}
		if o := s.option("mode"); o != nil && slices.Contains(o.offers(), free) {
			return o.set(session, free, false), o.Current != free
		}
	}
	return setting{}, false
}

// model is the request for a model; not ok, and must, where there is no choice. A
// name that is not offered is sent all the same: the program may know it, and what
// it answers is clearer.
func (s *settings) model(session, name string) (_ setting, ok bool) {
	switch o := s.option("model"); {
	case len(s.Models.Available) > 0:
		return setting{"model " + name, sdk.AgentMethodSessionSetModel, sdk.UnstableSetSessionModelRequest{
			SessionId: sdk.SessionId(session), ModelId: sdk.UnstableModelId(name),
		}, true}, s.Models.Current != name
	case o != nil:
		return o.set(session, name, true), o.Current != name
	}
	return setting{must: true}, false
}

func (s *settings) option(category string) *option {
	for i, o := range s.Options {
		if o.ID == category || strings.EqualFold(o.Category, category) {
			return &s.Options[i]
		}
	}
	return nil
}

func (o *option) set(session, value string, must bool) setting {
	return setting{o.ID + " " + value, sdk.AgentMethodSessionSetConfigOption, map[string]any{
		"sessionId": session, "configId": o.ID, "value": value,
	}, must}
}
