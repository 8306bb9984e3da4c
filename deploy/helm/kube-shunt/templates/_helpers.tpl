{{- define "kube-shunt.labels" -}}
app.kubernetes.io/name: kube-shunt
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "kube-shunt.serviceAccount" -}}
{{ .Values.serviceAccount.name | default .Release.Name }}
{{- end }}

{{- define "kube-shunt.configMap" -}}
{{ .Values.config.existingConfigMap | default .Release.Name }}
{{- end }}

{{- define "kube-shunt.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "kube-shunt.env" -}}
- name: NODE_NAME
  valueFrom:
    fieldRef:
      fieldPath: spec.nodeName
{{- with .Values.apiServer }}
{{- if .host }}
- name: KUBERNETES_SERVICE_HOST
  value: {{ .host | quote }}
- name: KUBERNETES_SERVICE_PORT
  value: {{ .port | quote }}
{{- end }}
{{- end }}
{{- end }}
