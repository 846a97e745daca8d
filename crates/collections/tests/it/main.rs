//! Collections against naive models.

mod model_packed;
